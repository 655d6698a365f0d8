"""Arithmetic of integers and bool: everything wraps, division by zero gives 0.

Source: NumPy's integer division and shifts, which these equal.
"""

from ...dtypes import DType
from ...loops.expressions import BinaryFunction as B
from .instructions import Instructions
from .values import Value, constant

__all__ = ["integer_binary", "integer_compare"]

_PLAIN = {B.ADD: "add", B.SUB: "sub", B.MUL: "mul", B.AND: "and", B.OR: "or", B.XOR: "xor"}
_BOOL = {B.ADD: "xor", B.SUB: "xor", B.MUL: "and", B.MIN: "and", B.MAX: "or"}
"""bool is an integer of one bit."""


def integer_binary(e: Instructions, function: B, a: Value, b: Value) -> Value:
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
            return e.power(a, b)
        case B.DIV | B.REM:
            return _divide(e, function, a, b)
        case B.FLOORDIV:
            return _floor_divide(e, a, b)
        case _:
            return _modulo(e, a, b)


def integer_compare(e: Instructions, function: B, a: Value, b: Value) -> Value:
    """A comparison of integers or bool."""
    if function in (B.EQ, B.NE):
        return e.compare(function.value, a, b)
    return e.compare(f"{'s' if a.dtype.is_signed else 'u'}{function.value}", a, b)


def _shift(e: Instructions, function: B, a: Value, b: Value) -> Value:
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


def _divide(e: Instructions, function: B, a: Value, b: Value) -> Value:
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


def _divide_narrow(e: Instructions, opcode: str, a: Value, b: int) -> Value:
    """In 32 bits, for which vectors have multiplications."""
    if a.dtype.bytes < 8:
        return e.binary(opcode, a, constant(b, a.dtype, a.lanes))
    narrow = e.convert("trunc", a, DType.UINT32)
    divided = e.binary(opcode, narrow, constant(b, DType.UINT32, a.lanes))
    return e.convert("zext", divided, a.dtype)


def _floor_divide(e: Instructions, a: Value, b: Value) -> Value:
    quotient = _divide(e, B.DIV, a, b)
    if _exact(a, b):
        return quotient
    if e.divides_twice:
        rest = _divide(e, B.REM, a, b)
        lower = e.binary("add", quotient, constant(-1, a.dtype, a.lanes))
        return e.select(_wrong(e, rest, b), lower, quotient)
    rest = e.binary("sub", a, e.binary("mul", quotient, b))
    down = _wrong(e, rest, b)
    return e.binary("sub", quotient, e.binary("and", e.convert("zext", down, a.dtype), _real(e, b)))


def _real(e: Instructions, b: Value) -> Value:
    """All bits where the divisor is not zero: the quotient of 0 stays 0."""
    if b.constant:
        return constant(-1, b.dtype, b.lanes)
    return e.convert("sext", _non_zero(e, b), b.dtype)


def _modulo(e: Instructions, a: Value, b: Value) -> Value:
    rest = _divide(e, B.REM, a, b)
    if _exact(a, b):
        return rest
    return e.select(_wrong(e, rest, b), e.binary("add", rest, b), rest)


def _exact(a: Value, b: Value) -> bool:
    """True if truncating is rounding down."""
    if not a.dtype.is_signed:
        return True
    positive = b.low is not None and b.low > 0
    return positive and a.low is not None and a.low >= 0


def _non_zero(e: Instructions, a: Value) -> Value:
    return e.compare("ne", a, constant(0, a.dtype, a.lanes))


def _wrong(e: Instructions, rest: Value, b: Value) -> Value:
    """True if a truncated remainder is not 0 and has not the sign of the divisor."""
    some, signs = _non_zero(e, rest), e.binary("xor", rest, b)
    return e.binary("and", some, e.compare("slt", signs, constant(0, b.dtype, b.lanes)))
