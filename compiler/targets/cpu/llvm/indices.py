"""Index arithmetic that stays symbolic: constants folded, ``base + stride * lane`` kept so."""

from ....dtypes import DType
from ....loops.expressions import COMPARISONS
from ....loops.expressions import BinaryFunction as B
from ...llvm.integers import integer_binary, integer_compare
from ...llvm.values import Linear, Operand, Value, constant
from .emitter import Emitter
from .known import bounded, fold

__all__ = ["index_arithmetic"]


def index_arithmetic(e: Emitter, function: B, left: Operand, right: Operand) -> Operand | None:
    """``function(left, right)`` of int64, if it needs less than the operands' vectors."""
    if isinstance(left, Linear) or isinstance(right, Linear):
        return _linear(e, function, left, right)
    if left.lanes == right.lanes == 1:
        return _scalar(e, function, left, right)
    return None


def _scalar(e: Emitter, function: B, left: Value, right: Value) -> Value | None:
    if left.constant is not None and right.constant is not None:
        folded = fold(function, int(left.constant), int(right.constant), DType.INT64)
        if folded is not None:
            return constant(folded, DType.BOOL if function in COMPARISONS else DType.INT64)
    if function in (B.ADD, B.SUB) and right.constant == 0:
        return left
    if function is B.ADD and left.constant == 0:
        return right
    if function in (B.MUL, B.FLOORDIV) and right.constant == 1:
        return left
    if function is B.MUL and left.constant == 1:
        return right
    if function is B.MUL and 0 in (left.constant, right.constant):
        return constant(0, DType.INT64)
    return _decided(function, left, right) if function in COMPARISONS else None


def _decided(function: B, left: Value, right: Value) -> Value | None:
    """A comparison whose operands' bounds decide it."""
    if left.low is None or left.high is None or right.low is None or right.high is None:
        return None
    match function:
        case B.LT if left.high < right.low:
            return constant(True, DType.BOOL)
        case B.LT if left.low >= right.high:
            return constant(False, DType.BOOL)
        case B.LE if left.high <= right.low:
            return constant(True, DType.BOOL)
        case B.LE if left.low > right.high:
            return constant(False, DType.BOOL)
        case _:
            return None


def _linear(e: Emitter, function: B, left: Operand, right: Operand) -> Operand | None:
    for side in (left, right):
        if isinstance(side, Value) and side.lanes > 1:
            return None
    lanes = max(left.lanes, right.lanes)
    a = left if isinstance(left, Linear) else Linear(left, 0, lanes)
    b = right if isinstance(right, Linear) else Linear(right, 0, lanes)
    match function:
        case B.ADD | B.SUB:
            stride = a.stride + b.stride if function is B.ADD else a.stride - b.stride
            base = _compute(e, function, a.base, b.base)
            return Linear(base, stride, lanes) if stride else base
        case B.MUL if not (a.stride and b.stride):
            varying, fixed = (a, b) if a.stride else (b, a)
            if fixed.base.constant is None:
                return None
            base = _compute(e, function, varying.base, fixed.base)
            stride = varying.stride * int(fixed.base.constant)
            return Linear(base, stride, lanes) if stride else base
        case B.FLOORDIV | B.MOD if not b.stride and b.base.constant is not None:
            return _divided(e, function, a, b.base)
        case B.LT | B.LE if {a.stride, b.stride} == {0, 1}:
            return _compared(e, function, a, b)
        case _:
            return None


def _compute(e: Emitter, function: B, a: Value, b: Value) -> Value:
    known = _scalar(e, function, a, b)
    if known is not None:
        return known
    if function in COMPARISONS:
        return integer_compare(e, function, a, b)
    return bounded(function, a, b, integer_binary(e, function, a, b))


def _divided(e: Emitter, function: B, a: Linear, by: Value) -> Operand | None:
    """Lanes that all have one quotient, since the base is a multiple of more than their span."""
    divisor, step = int(by.constant or 0), a.base.multiple
    if divisor <= 0 or a.stride < 0:
        return None
    if a.base.constant is not None:
        room = divisor - int(a.base.constant) % divisor
    elif step % divisor == 0:
        room = divisor
    elif divisor % step == 0:
        room = step
    else:
        return None
    if a.stride * (a.lanes - 1) >= room:
        return None
    base = _compute(e, function, a.base, by)
    return base if function is B.FLOORDIV else Linear(base, a.stride, a.lanes)


def _compared(e: Emitter, function: B, a: Linear, b: Linear) -> Value | None:
    """Lane numbers against the distance of the bases, in 32 bits."""
    flipped = b.stride == 1
    moving, limit = (b.base, a.base) if flipped else (a.base, b.base)
    distance = _compute(e, B.SUB, limit, moving)
    if distance.low is None:
        return None
    inclusive = (function is B.LE) != flipped
    count = _compute(e, B.ADD, distance, constant(int(inclusive), DType.INT64))
    if count.low is not None and count.low >= a.lanes:
        return constant(not flipped, DType.BOOL)
    if count.high is not None and count.high <= 0:
        return constant(flipped, DType.BOOL)
    zero, most = constant(0, DType.INT64), constant(a.lanes, DType.INT64)
    held = _compute(e, B.MIN, _compute(e, B.MAX, count, zero), most)
    narrow = e.broadcast(e.convert("trunc", held, DType.INT32), a.lanes)
    numbers = ", ".join(f"i32 {lane}" for lane in range(a.lanes))
    lanes = Value(f"<{numbers}>", DType.INT32, a.lanes)
    return e.compare("uge" if flipped else "ult", lanes, narrow)
