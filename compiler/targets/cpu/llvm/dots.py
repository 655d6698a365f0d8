"""Instructions of dot products, by what the CPU has."""

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ...llvm.values import Value, constant, llvm_type
from ..arch.arch import Dot
from .context import Place
from .conversions import convert, to_float32
from .emitter import Emitter

__all__ = ["DotProduct", "emit_dot"]


@frozen
class DotProduct:
    """``c[lanes] += a . b[lanes, ...]``; columns: ``a[..., lane]`` in place of ``a``."""

    a: DType
    b: DType
    lanes: int
    columns: bool


def emit_dot(e: Emitter, dot: DotProduct, a: Place, b: Place, c: Place) -> None:
    """The dot product of operands that are contiguous."""
    count = 4 // dot.a.bytes
    total = DType.FLOAT32 if dot.a.is_float else DType.INT32
    before = _load(e, c, total, dot.lanes)
    vector = _load(e, b, dot.b, dot.lanes * count)
    if dot.columns:
        after = _columns(e, dot, before, _load(e, a, dot.a, dot.lanes * count), vector)
        e.line(f"store {after.typed}, ptr {c.pointer}, align 4")
        return
    four = _load(e, a, DType.INT32, 1)
    match dot.a:
        case DType.UINT8 | DType.INT8:
            after = _bytes(e, dot, before, four, vector)
        case DType.INT16:
            after = _pairs(e, before, _spread(e, four, dot), vector)
        case _:
            after = _bfloat16(e, dot, before, four, vector)
    e.line(f"store {after.typed}, ptr {c.pointer}, align 4")


def _load(e: Emitter, place: Place, dtype: DType, lanes: int) -> Value:
    text = f"load {llvm_type(dtype, lanes)}, ptr {place.pointer}, align {place.buffer.dtype.bytes}"
    return e.op(text, dtype, lanes)


def _spread(e: Emitter, four: Value, dot: DotProduct) -> Value:
    """Four bytes, of one operand's elements, in every lane."""
    wide = e.broadcast(four, dot.lanes)
    lanes = dot.lanes * 4 // dot.a.bytes
    return e.op(f"bitcast {wide.typed} to {llvm_type(dot.a, lanes)}", dot.a, lanes)


def _shuffled(e: Emitter, a: Value, picks: list[int]) -> Value:
    mask = ", ".join(f"i32 {pick}" for pick in picks)
    text = f"shufflevector {a.typed}, {a.type} poison, <{len(picks)} x i32> <{mask}>"
    return e.op(text, a.dtype, len(picks))


def _instruction(e: Emitter, dtype: DType, lanes: int) -> Dot | None:
    """The best one for a first operand of ``dtype`` that the CPU has."""
    target = e.module.target
    suitable = (each for each in target.arch.dots if each.needs <= target.features)
    return next((each for each in suitable if (each.a, each.lanes) == (dtype, lanes)), None)


def _called(e: Emitter, dot: Dot, before: Value, a: Value, b: Value) -> Value:
    """``before`` and the product, each part of the lanes by a call; without ``adds`` the product
    alone.
    """
    if dot.width == dot.lanes:
        return e.call(dot.intrinsic, before.dtype, dot.lanes, (before, a, b)[not dot.adds :])
    parts = []
    ratio = a.lanes // dot.lanes
    for first in range(0, dot.lanes, dot.width):
        total = _shuffled(e, before, list(range(first, first + dot.width))) if dot.adds else before
        picks = list(range(ratio * first, ratio * (first + dot.width)))
        operands = [_shuffled(e, each, picks) for each in (a, b)]
        given = (total, *operands)[not dot.adds :]
        parts.append(e.call(dot.intrinsic, before.dtype, dot.width, given))
    while len(parts) > 1:
        parts = [_joined(e, *parts[n : n + 2]) for n in range(0, len(parts), 2)]
    return parts[0]


def _bytes(e: Emitter, dot: DotProduct, before: Value, four: Value, vector: Value) -> Value:
    """Signed bytes without an instruction are raised to unsigned ones, and lowered after it."""
    found = _instruction(e, dot.a, dot.lanes)
    if found is not None:
        return _called(e, found, before, _spread(e, four, dot), vector)
    found = _instruction(e, DType.UINT8, dot.lanes)
    if found is None:
        return _bytes_as_words(e, dot, before, four, vector)
    raised = e.binary("xor", four, constant(-0x7F7F7F80, DType.INT32))
    sums = _called(e, found, before, _spread(e, raised, dot), vector)
    offset = constant(-128, DType.INT8, vector.lanes)
    zero = constant(0, DType.INT32, dot.lanes)
    return e.binary("sub", sums, _called(e, found, zero, offset, vector))


def _columns(e: Emitter, dot: DotProduct, before: Value, rows: Value, vector: Value) -> Value:
    """The four elements of each lane of ``rows`` brought together: a transposition."""
    lanes = dot.lanes
    found = _instruction(e, dot.a, lanes)
    if found is not None:
        picked = _shuffled(e, rows, [lanes * (n % 4) + n // 4 for n in range(4 * lanes)])
        return _called(e, found, before, picked, vector)
    total = before
    for pair in (0, 2):
        left = [lanes * (pair + n % 2) + n // 2 for n in range(2 * lanes)]
        right = [4 * (n // 2) + pair + n % 2 for n in range(2 * lanes)]
        both = (_shuffled(e, each, own) for each, own in ((rows, left), (vector, right)))
        total = _pairs(e, total, *(convert(e, each, DType.INT16) for each in both))
    return total


def _bytes_as_words(
    e: Emitter, dot: DotProduct, before: Value, four: Value, vector: Value
) -> Value:
    """Pairs of bytes as pairs of 16-bit words, which cannot overflow."""
    scalars = e.op(f"bitcast {four.typed} to {llvm_type(dot.a, 4)}", dot.a, 4)
    words = convert(e, scalars, DType.INT16)
    total = before
    for pair in (0, 1):
        picked = _shuffled(e, words, [2 * pair, 2 * pair + 1])
        both = e.op(f"bitcast {picked.typed} to i32", DType.INT32)
        spread = e.broadcast(both, dot.lanes)
        lanes = 2 * dot.lanes
        left = e.op(f"bitcast {spread.typed} to <{lanes} x i16>", DType.INT16, lanes)
        picks = [4 * (n // 2) + 2 * pair + n % 2 for n in range(lanes)]
        right = convert(e, _shuffled(e, vector, picks), DType.INT16)
        total = _pairs(e, total, left, right)
    return total


def _pairs(e: Emitter, before: Value, a: Value, b: Value) -> Value:
    """``before[i] + a[2i] b[2i] + a[2i+1] b[2i+1]``, of int16."""
    found = _instruction(e, DType.INT16, before.lanes)
    if found is not None:
        result = _called(e, found, before, a, b)
        return result if found.adds else e.binary("add", before, result)
    for place in (0, 1):
        picks = list(range(place, a.lanes, 2))
        left, right = (convert(e, _shuffled(e, each, picks), DType.INT32) for each in (a, b))
        before = e.binary("add", before, e.binary("mul", left, right))
    return before


def _joined(e: Emitter, a: Value, b: Value) -> Value:
    lanes = 2 * a.lanes
    mask = ", ".join(f"i32 {pick}" for pick in range(lanes))
    text = f"shufflevector {a.typed}, {b.typed}, <{lanes} x i32> <{mask}>"
    return e.op(text, a.dtype, lanes)


def _bfloat16(e: Emitter, dot: DotProduct, before: Value, four: Value, vector: Value) -> Value:
    found = _instruction(e, dot.a, dot.lanes)
    if found is not None:
        kind = f"<{2 * dot.lanes} x bfloat>"
        operands = []
        for each in (_spread(e, four, dot), vector):
            operands.append(e.op(f"bitcast {each.typed} to {kind}", each.dtype, each.lanes))
        result = before.type
        e.module.declare(found.intrinsic, result, (result, kind, kind))
        arguments = ", ".join((before.typed, *(f"{kind} {each.ref}" for each in operands)))
        text = f"call {result} @{found.intrinsic}({arguments})"
        return e.op(text, before.dtype, before.lanes)
    pair = e.op(f"bitcast {four.typed} to {llvm_type(dot.a, 2)}", dot.a, 2)
    total = before
    for n in (0, 1):
        left = e.broadcast(to_float32(e, e.extract(pair, n)), dot.lanes)
        picked = _shuffled(e, vector, list(range(n, 2 * dot.lanes, 2)))
        total = e.intrinsic("fmuladd", left, to_float32(e, picked), total)
    return total
