"""The value of an integer, or its bounds and a factor of it, as its operands tell them."""

import math

from ....dtypes import DType
from ....loops.arithmetic import wrap
from ....loops.expressions import BinaryFunction as B
from ...llvm.values import Value

__all__ = ["bounded", "fold"]


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
