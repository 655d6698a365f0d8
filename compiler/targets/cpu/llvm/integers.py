"""Arithmetic of integers and bool: everything wraps, division by zero gives 0.

Source: NumPy's integer division and shifts, which these equal.
"""

import math

from ....dtypes import DType
from ....loops.expressions import BinaryFunction as B
from .emitter import Emitter
from .values import Value, constant, wrap

__all__ = ["bounded", "fold", "integer_binary", "integer_compare"]

_PLAIN = {B.ADD: "add", B.SUB: "sub", B.MUL: "mul", B.AND: "and", B.OR: "or", B.XOR: "xor"}
_BOOL = {B.ADD: "xor", B.SUB: "xor", B.MUL: "and", B.MIN: "and", B.MAX: "or"}
"""bool is an integer of one bit."""


def integer_binary(e: Emitter, function: B, a: Value, b: Value) -> Value:
    """``function(a, b)`` of integers or bool."""
    if a.dtype is DType.BOOL and function in _BOOL:
        return e.binary(_BOOL[function], a, b)
    if a.dtype is DType.BOOL and function not in _PLAIN:
        wide = (e.convert("zext", x, DType.UINT8) for x in (a, b))
        return e.convert("trunc", integer_binary(e, function, *wide), DType.BOOL)
    if function in _PLAIN:
        return e.binary(_PLAIN[function], a, b)
    match function:
        case B.MIN | B.MAX:
            return e.intrinsic(f"{'s' if a.dtype.is_signed else 'u'}{function.value}", a, b)
        case B.SHL | B.SHR:
            return _shift(e, function, a, b)
        case B.POW:
            return e.each_lane(_power(e, a.dtype), a, b)
        case B.DIV | B.REM:
            return _divide(e, function, a, b)
        case B.FLOORDIV:
            return _floor_divide(e, a, b)
        case _:
            return _modulo(e, a, b)


def integer_compare(e: Emitter, function: B, a: Value, b: Value) -> Value:
    """A comparison of integers or bool."""
    if function in (B.EQ, B.NE):
        return e.compare(function.value, a, b)
    return e.compare(f"{'s' if a.dtype.is_signed else 'u'}{function.value}", a, b)


def _shift(e: Emitter, function: B, a: Value, b: Value) -> Value:
    """By as many bits as the type has, or more: all bits are shifted out."""
    bits = a.dtype.bytes * 8
    opcode = "shl" if function is B.SHL else "ashr" if a.dtype.is_signed else "lshr"
    if b.constant is not None and 0 <= b.constant < bits:
        return e.binary(opcode, a, b)
    inside = e.compare("ult", b, constant(bits, a.dtype, a.lanes))
    if opcode == "ashr":
        return e.binary(opcode, a, e.select(inside, b, constant(bits - 1, a.dtype, a.lanes)))
    zero = constant(0, a.dtype, a.lanes)
    return e.select(inside, e.binary(opcode, a, e.select(inside, b, zero)), zero)


def _divide(e: Emitter, function: B, a: Value, b: Value) -> Value:
    """Quotient or remainder, truncated; neither zero nor the lowest by -1 traps."""
    signed, divide = a.dtype.is_signed, function is B.DIV
    non_negative = a.low is not None and a.low >= 0
    opcode = ("s" if signed and not non_negative else "u") + ("div" if divide else "rem")
    zero = constant(0, a.dtype, a.lanes)
    if b.constant is not None and b.constant > 0:
        if a.lanes > 1 and non_negative and max(a.high or 1 << 63, int(b.constant)) < 1 << 31:
            return _divide_narrow(e, opcode, a, int(b.constant))
        return e.binary(opcode, a, b)
    opcode = ("s" if signed else "u") + ("div" if divide else "rem")
    none = e.compare("eq", b, zero)
    unsafe = none
    if signed:
        minus = e.compare("eq", b, constant(-1, a.dtype, a.lanes))
        unsafe = e.binary("or", none, minus)
    result = e.binary(opcode, a, e.select(unsafe, constant(1, a.dtype, a.lanes), b))
    if signed:
        result = e.select(minus, e.binary("sub", zero, a) if divide else zero, result)
    return e.select(none, zero, result)


def _divide_narrow(e: Emitter, opcode: str, a: Value, b: int) -> Value:
    """In 32 bits, for which vectors have multiplications."""
    if a.dtype.bytes < 8:
        return e.binary(opcode, a, constant(b, a.dtype, a.lanes))
    narrow = e.convert("trunc", a, DType.UINT32)
    divided = e.binary(opcode, narrow, constant(b, DType.UINT32, a.lanes))
    return e.convert("zext", divided, a.dtype)


def _floor_divide(e: Emitter, a: Value, b: Value) -> Value:
    quotient = _divide(e, B.DIV, a, b)
    if _exact(a, b):
        return quotient
    rest = e.binary("sub", a, e.binary("mul", quotient, b))
    down = e.binary("and", _non_zero(e, rest), _opposite(e, rest, b))
    return e.binary("sub", quotient, e.binary("and", e.convert("zext", down, a.dtype), _real(e, b)))


def _real(e: Emitter, b: Value) -> Value:
    """All bits where the divisor is not zero: the quotient of 0 stays 0."""
    if b.constant:
        return constant(-1, b.dtype, b.lanes)
    return e.convert("sext", _non_zero(e, b), b.dtype)


def _modulo(e: Emitter, a: Value, b: Value) -> Value:
    rest = _divide(e, B.REM, a, b)
    if _exact(a, b):
        return rest
    wrong = e.binary("and", _non_zero(e, rest), _opposite(e, rest, b))
    return e.select(wrong, e.binary("add", rest, b), rest)


def _exact(a: Value, b: Value) -> bool:
    """Whether truncating is rounding down."""
    if not a.dtype.is_signed:
        return True
    positive = b.low is not None and b.low > 0
    return positive and a.low is not None and a.low >= 0


def _non_zero(e: Emitter, a: Value) -> Value:
    return e.compare("ne", a, constant(0, a.dtype, a.lanes))


def _opposite(e: Emitter, a: Value, b: Value) -> Value:
    """Whether the signs differ."""
    return e.compare("slt", e.binary("xor", a, b), constant(0, a.dtype, a.lanes))


def _power(e: Emitter, dtype: DType) -> str:
    """A function: ``a ** b`` by squaring; of a negative exponent the integer part of the power."""
    kind = Value("", dtype).type
    name = f"dovetail.pow.{dtype.value}"
    negative = (
        f"""
  %minus = icmp slt {kind} %b, 0
  br i1 %minus, label %fraction, label %start
fraction:
  %one = icmp eq {kind} %a, 1
  %minus.one = icmp eq {kind} %a, -1
  %odd.b = and {kind} %b, 1
  %odd = icmp ne {kind} %odd.b, 0
  %sign = select i1 %odd, {kind} -1, {kind} 1
  %unit = select i1 %minus.one, {kind} %sign, {kind} 0
  %tiny = select i1 %one, {kind} 1, {kind} %unit
  ret {kind} %tiny
start:"""
        if dtype.is_signed
        else ""
    )
    before = "start" if dtype.is_signed else "entry"
    e.module.define(
        name,
        f"""define internal {kind} @{name}({kind} %a, {kind} %b) {{
entry:{negative}
  br label %loop
loop:
  %base = phi {kind} [ %a, %{before} ], [ %square, %loop ]
  %rest = phi {kind} [ %b, %{before} ], [ %half, %loop ]
  %product = phi {kind} [ 1, %{before} ], [ %next, %loop ]
  %bit = and {kind} %rest, 1
  %set = icmp ne {kind} %bit, 0
  %times = mul {kind} %product, %base
  %next = select i1 %set, {kind} %times, {kind} %product
  %square = mul {kind} %base, %base
  %half = lshr {kind} %rest, 1
  %done = icmp eq {kind} %half, 0
  br i1 %done, label %end, label %loop
end:
  ret {kind} %next
}}""",
    )
    return name


def fold(function: B, a: int, b: int, dtype: DType) -> int | bool | None:
    """``function(a, b)`` of two known integers, or None where it is left to the code."""
    match function:
        case B.ADD:
            return wrap(a + b, dtype)
        case B.SUB:
            return wrap(a - b, dtype)
        case B.MUL:
            return wrap(a * b, dtype)
        case B.FLOORDIV:
            return wrap(a // b, dtype) if b else None
        case B.MOD:
            return a % b if b else None
        case B.MIN:
            return min(a, b)
        case B.MAX:
            return max(a, b)
        case B.LT:
            return a < b
        case B.LE:
            return a <= b
        case B.EQ:
            return a == b
        case B.NE:
            return a != b
        case _:
            return None


def bounded(function: B, a: Value, b: Value, result: Value) -> Value:
    """``result``, which is ``function(a, b)``, with what is known of it from the operands."""
    known = _bounds(function, a, b)
    if known is None:
        return result
    match function:
        case B.ADD | B.SUB:
            multiple = math.gcd(a.multiple, b.multiple)
        case B.MUL:
            multiple = a.multiple * b.multiple
        case _:
            multiple = 1
    return Value(result.ref, result.dtype, result.lanes, None, *known, multiple)


def _bounds(function: B, a: Value, b: Value) -> tuple[int, int] | None:
    """Bounds of the result, from the operands'; None where they are unknown or may wrap."""
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return None
    match function:
        case B.ADD:
            found = (a.low + b.low, a.high + b.high)
        case B.SUB:
            found = (a.low - b.high, a.high - b.low)
        case B.MUL:
            ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            found = (min(ends), max(ends))
        case B.MIN:
            found = (min(a.low, b.low), min(a.high, b.high))
        case B.MAX:
            found = (max(a.low, b.low), max(a.high, b.high))
        case B.FLOORDIV | B.DIV if b.low > 0 and a.low >= 0:
            found = (a.low // b.high, a.high // b.low)
        case B.MOD | B.REM if b.low > 0 and a.low >= 0:
            found = (0, min(a.high, b.high - 1))
        case _:
            return None
    inside = wrap(found[0], a.dtype) == found[0] and wrap(found[1], a.dtype) == found[1]
    return found if inside else None
