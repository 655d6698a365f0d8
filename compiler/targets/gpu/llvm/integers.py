"""Arithmetic of integers and bool: everything wraps, division by zero gives 0."""

from collections.abc import Mapping

from ....dtypes import DType
from ....errors import GraphError
from ....loops.expressions import BinaryFunction as B
from .emitter import Emitter, value_type

__all__ = ["integer_binary", "integer_compare"]

PLAIN: Mapping[B, str] = {
    B.ADD: "add",
    B.SUB: "sub",
    B.MUL: "mul",
    B.AND: "and",
    B.OR: "or",
    B.XOR: "xor",
}
OF_BOOL: Mapping[B, str] = {B.ADD: "xor", B.SUB: "xor", B.MUL: "and", B.MIN: "and", B.MAX: "or"}
"""bool is an integer of one bit."""


def integer_compare(e: Emitter, function: B, dtype: DType, a: str, b: str) -> str:
    """A comparison of integers or bool."""
    sign = "" if function in (B.EQ, B.NE) else "s" if dtype.is_signed else "u"
    return e.op(f"icmp {sign}{function.value} {value_type(dtype)} {a}, {b}")


def integer_binary(e: Emitter, function: B, dtype: DType, a: str, b: str) -> str:
    """``function(a, b)``."""
    kind = value_type(dtype)
    if dtype is DType.BOOL and function in OF_BOOL:
        return e.op(f"{OF_BOOL[function]} i1 {a}, {b}")
    if function in PLAIN:
        return e.op(f"{PLAIN[function]} {kind} {a}, {b}")
    if dtype is DType.BOOL:
        wide = [e.op(f"zext i1 {each} to i8") for each in (a, b)]
        return e.op(f"trunc i8 {integer_binary(e, function, DType.UINT8, *wide)} to i1")
    match function:
        case B.MIN | B.MAX:
            name = f"llvm.{'s' if dtype.is_signed else 'u'}{function.value}.{kind}"
            return e.call(name, kind, (kind, a), (kind, b))
        case B.SHL | B.SHR:
            return _shift(e, function, dtype, a, b)
        case B.DIV | B.REM:
            return _divide(e, function is B.DIV, dtype, a, b)
        case B.FLOORDIV:
            return _floor_divide(e, dtype, a, b)
        case B.MOD:
            rest = _divide(e, False, dtype, a, b)
            if not dtype.is_signed:
                return rest
            return e.op(
                f"select i1 {_off(e, kind, rest, b)}, {kind} "
                f"{e.op(f'add {kind} {rest}, {b}')}, {kind} {rest}"
            )
        case B.POW:
            return _power(e, dtype, a, b)
        case _:
            raise GraphError(f"{function} of {dtype} has no meaning")


def _shift(e: Emitter, function: B, dtype: DType, a: str, b: str) -> str:
    """By all bits or more: everything is shifted out."""
    kind, bits = value_type(dtype), 8 * dtype.bytes
    inside = e.op(f"icmp ult {kind} {b}, {bits}")
    if function is B.SHR and dtype.is_signed:
        amount = e.op(f"select i1 {inside}, {kind} {b}, {kind} {bits - 1}")
        return e.op(f"ashr {kind} {a}, {amount}")
    amount = e.op(f"select i1 {inside}, {kind} {b}, {kind} 0")
    shifted = e.op(f"{'shl' if function is B.SHL else 'lshr'} {kind} {a}, {amount}")
    return e.op(f"select i1 {inside}, {kind} {shifted}, {kind} 0")


def _is_positive(b: str) -> bool:
    return b.isdecimal() and b != "0"


def _divide(e: Emitter, divide: bool, dtype: DType, a: str, b: str) -> str:
    """Quotient or remainder, truncated; the lowest by -1 wraps."""
    kind, signed = value_type(dtype), dtype.is_signed
    opcode = ("s" if signed else "u") + ("div" if divide else "rem")
    if _is_positive(b):
        return e.op(f"{opcode} {kind} {a}, {b}")
    none = e.op(f"icmp eq {kind} {b}, 0")
    unsafe = none
    if signed:
        minus = e.op(f"icmp eq {kind} {b}, -1")
        unsafe = e.op(f"or i1 {none}, {minus}")
    found = e.op(f"{opcode} {kind} {a}, {e.op(f'select i1 {unsafe}, {kind} 1, {kind} {b}')}")
    if signed:
        other = e.op(f"sub {kind} 0, {a}") if divide else "0"
        found = e.op(f"select i1 {minus}, {kind} {other}, {kind} {found}")
    return e.op(f"select i1 {none}, {kind} 0, {kind} {found}")


def _off(e: Emitter, kind: str, rest: str, b: str) -> str:
    """Whether a remainder that was truncated has not the sign of the divisor."""
    some = e.op(f"icmp ne {kind} {rest}, 0")
    apart = e.op(f"icmp slt {kind} {e.op(f'xor {kind} {rest}, {b}')}, 0")
    return e.op(f"and i1 {some}, {apart}")


def _floor_divide(e: Emitter, dtype: DType, a: str, b: str) -> str:
    quotient = _divide(e, True, dtype, a, b)
    if not dtype.is_signed:
        return quotient
    kind = value_type(dtype)
    rest = _divide(e, False, dtype, a, b)
    lower = e.op(f"add {kind} {quotient}, -1")
    return e.op(f"select i1 {_off(e, kind, rest, b)}, {kind} {lower}, {kind} {quotient}")


def _power(e: Emitter, dtype: DType, a: str, b: str) -> str:
    """By squaring, a step for each bit; of a negative exponent the integer part of the power."""
    kind = value_type(dtype)
    result, base, rest = "1", a, b
    for _ in range(8 * dtype.bytes):
        odd = e.op(f"trunc {kind} {rest} to i1")
        result = e.op(
            f"select i1 {odd}, {kind} {e.op(f'mul {kind} {result}, {base}')}, {kind} {result}"
        )
        base, rest = e.op(f"mul {kind} {base}, {base}"), e.op(f"lshr {kind} {rest}, 1")
    if not dtype.is_signed:
        return result
    one, minus = e.op(f"icmp eq {kind} {a}, 1"), e.op(f"icmp eq {kind} {a}, -1")
    sign = e.op(f"select i1 {e.op(f'trunc {kind} {b} to i1')}, {kind} -1, {kind} 1")
    unit = e.op(f"select i1 {minus}, {kind} {sign}, {kind} 0")
    unit = e.op(f"select i1 {one}, {kind} 1, {kind} {unit}")
    below = e.op(f"icmp slt {kind} {b}, 0")
    return e.op(f"select i1 {below}, {kind} {unit}, {kind} {result}")
