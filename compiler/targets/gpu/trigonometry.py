"""Trigonometric functions and their inverses, as arithmetic.

Arguments are reduced by Cody and Waite's method, to less than 2^20 without loss.
"""

import math

from ...dtypes import DType
from ...loops.expressions import Binary, Cast, Constant, Expr, Select, Unary
from ...loops.expressions import BinaryFunction as B
from ...loops.expressions import UnaryFunction as U
from .arithmetic import F32, F64, absolute, divide, number, root, series, with_sign

__all__ = ["acos", "asin", "atan", "tan", "turned"]

HALF_PI = (1.57079632673412561417, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
"""pi / 2 in three parts of 33 bits."""


def _quadrant(x: Expr) -> tuple[Expr, Expr]:
    """``x`` less the nearest multiple of pi / 2, in float64, and that multiple's number."""
    wide = x if x.dtype is F64 else Cast(F64, x)
    n = Unary(U.RINT, wide * (2 / math.pi))
    r = ((wide - n * HALF_PI[0]) - n * HALF_PI[1]) - n * HALF_PI[2]
    return Select(absolute(wide) < math.inf, r, number(math.nan, wide)), Cast(DType.INT64, n)


def _sine_and_cosine(r: Expr, dtype: DType) -> tuple[Expr, Expr]:
    near = Cast(dtype, r) if dtype is not F64 else r
    square = near * near
    terms = 6 if dtype is F32 else 10
    signs = [(-1) ** i for i in range(terms)]
    odd = [sign / math.factorial(2 * i + 1) for i, sign in enumerate(signs)]
    even = [sign / math.factorial(2 * i) for i, sign in enumerate(signs)]
    return near * series(square, odd), series(square, even)


def turned(x: Expr, quarters: int) -> Expr:
    """The sine of ``x`` and so many quarters of a turn."""
    r, n = _quadrant(x)
    sine, cosine = _sine_and_cosine(r, x.dtype)
    n = n + quarters
    one = Constant(1, n.dtype)
    value = Select(Binary(B.EQ, n & one, one), cosine, sine)
    two = Constant(2, n.dtype)
    return Select(Binary(B.EQ, n & two, two), Unary(U.NEG, value), value)


def tan(x: Expr) -> Expr:
    r, n = _quadrant(x)
    sine, cosine = _sine_and_cosine(r, x.dtype)
    one = Constant(1, n.dtype)
    odd = Binary(B.EQ, n & one, one)
    return Select(odd, Unary(U.NEG, divide(cosine, sine)), divide(sine, cosine))


def atan(x: Expr) -> Expr:
    """By that of ``1 / x`` beyond 1, and of ``(x - 1) / (x + 1)`` beyond tan(pi / 8)."""
    size = absolute(x)
    large = size > 1.0
    inner = Select(large, divide(1.0, size), size)
    middle = inner > 0.4142135623730951
    t = Select(middle, divide(inner - 1.0, inner + 1.0), inner)
    terms = 10 if x.dtype is F32 else 23
    found = t * series(t * t, [(-1) ** i / (2 * i + 1) for i in range(terms)])
    found = Select(middle, found + math.pi / 4, found)
    return with_sign(Select(large, number(math.pi / 2, x) - found, found), x)


def asin(x: Expr) -> Expr:
    one = number(1.0, x)
    return atan(divide(x, root((one - x) * (x + 1.0))))


def acos(x: Expr) -> Expr:
    one = number(1.0, x)
    return atan(root(divide(one - x, x + 1.0))) * 2.0
