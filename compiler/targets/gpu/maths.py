"""Functions of analysis as arithmetic, for machines that have no library of them.

Every function becomes an expression of sums, products, quotients, square roots, bits and
selections, of float32 or float64; those of 16-bit floats are computed in float32.  Reductions of
arguments are Cody and Waite's (Software Manual for the Elementary Functions, 1980), what is left is
a Taylor series; erf in float32 is two fits.
Arguments of trigonometric functions lose accuracy beyond 2^20.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from ...dtypes import DType
from ...loops.expressions import (
    COMPARISONS,
    Binary,
    Bitcast,
    Cast,
    Constant,
    Expr,
    MultiplyAdd,
    Select,
    Unary,
)
from ...loops.expressions import BinaryFunction as B
from ...loops.expressions import UnaryFunction as U
from ...loops.ir import Stmt
from ...loops.rewrite import map_expr, map_statement
from ...loops.traverse import operands
from .arithmetic import BITS, F32, F64, absolute, divide, fused, number, root, series, with_sign
from .trigonometry import acos, asin, atan, tan, turned

__all__ = ["expanded", "with_plain_functions"]

NARROW = (DType.FLOAT16, DType.BFLOAT16)
MANTISSA = {F32: 23, F64: 52}
BIAS = {F32: 127, F64: 1023}
LN2 = {
    F32: (0.693359375, -2.12194440054690583e-4),
    F64: (6.93147180369123816490e-1, 1.90821492927058770002e-10),
}
"""ln 2 in two parts; products of the first with small integers are exact."""
ERF_NEAR = (
    *(0.12837915122509003, -0.37612468004226685, 0.11281552165746689),
    *(-0.02675703354179859, 0.0049791294150054455, -0.000591941294260323),
)
ERF_FAR = (
    *(-1.1285560131072998, -0.63560551404953, -0.10530083626508713, 0.022714128717780113),
    *(-0.0029547440353780985, 5.8446323237149045e-05, 4.3849246139870957e-05),
    -4.796549092134228e-06,
)
ERF_SPLIT = 0.9375
"""erf(x) = x + x * near(x^2) below it, and 1 - exp(x * far(x)) above: polynomials with the least
largest error, weighted by what it is of erf.
"""
MAGIC, MAGIC_BITS = 12582912.0, 0x4B400000
"""A float32 whose last bit is 1: what is added to it is rounded to an integer, in its bits too."""


def with_plain_functions(body: Stmt) -> Stmt:
    """``body`` with ``expanded`` functions."""
    memo: dict[int, tuple[Expr, Expr]] = {}
    return map_statement(body, lambda expr: map_expr(expr, expanded, memo))


def expanded(expr: Expr) -> Expr:
    """``expr``, of plain operands, by plain functions."""
    if not isinstance(expr, Unary | Binary):
        return expr
    dtype = operands(expr)[0].dtype
    if dtype in NARROW:
        return _narrow(expr)
    if isinstance(expr, Unary) and expr.function in FUNCTIONS:
        if not dtype.is_float:
            return Cast(dtype, FUNCTIONS[expr.function](Cast(F64, expr.operand)))
        return FUNCTIONS[expr.function](expr.operand)
    if isinstance(expr, Binary) and dtype.is_float and expr.function in BINARY:
        return BINARY[expr.function](expr.left, expr.right)
    if isinstance(expr, Binary) and expr.function is B.DIV and dtype is F32:
        return _quotient(expr)
    return expr


def _quotient(expr: Binary) -> Expr:
    """``x / c`` as a product with 1 / c and a correction, where c is such a constant.

    It is the quotient, rounded, unless that is a denormal number (Markstein, IA-64 and Elementary
    Functions, 2000); GPUs divide by calling a function.
    """
    x, c = expr.left, expr.right
    if not isinstance(c, Constant) or not 2.0**-60 <= abs(c.value) <= 2.0**60:
        return expr
    # The theorem is not for a mantissa of ones alone.
    if math.frexp(abs(c.value))[0] >= 1.0 - 2.0**-24:
        return expr
    inverse = number(float(np.float32(1.0) / np.float32(c.value)), x)
    first = x * inverse
    rest = MultiplyAdd(Unary(U.NEG, first), c, x)
    # An infinite one has no rest, and -0 stays.
    wrong = absolute(rest) > 0.0
    if abs(c.value) < 1.0:
        wrong = wrong & (absolute(rest) < math.inf)
    return Select(wrong, MultiplyAdd(rest, inverse, first), first)


def _narrow(expr: Unary | Binary) -> Expr:
    """In float32, then rounded."""
    dtype = operands(expr)[0].dtype
    wide = [Cast(F32, each) for each in operands(expr)]
    if isinstance(expr, Unary):
        found = expanded(Unary(expr.function, wide[0]))
        return found if expr.dtype is DType.BOOL else Cast(dtype, found)
    found = expanded(Binary(expr.function, wide[0], wide[1]))
    return found if expr.function in COMPARISONS else Cast(dtype, found)


def _power_of_two(n: Expr, dtype: DType) -> Expr:
    """``2 ** n`` of an integer that gives a normal number."""
    shift = Constant(MANTISSA[dtype], n.dtype)
    return Bitcast(dtype, Binary(B.SHL, n + BIAS[dtype], shift))


def exp(x: Expr) -> Expr:
    """``2^n * exp(r)`` with ``|r| <= ln 2 / 2``, scaled in two steps: one might overflow."""
    high, low = (104.0, -104.0) if x.dtype is F32 else (746.0, -746.0)
    inside = Select(x < low, number(low, x), Select(x > high, number(high, x), x))
    first, second = LN2[x.dtype]
    if x.dtype is F32:
        # NaN stays what it is: its n is any number.
        shifted = MultiplyAdd(inside, number(math.log2(math.e), x), number(MAGIC, x))
        n: Expr = shifted - MAGIC
        r = fused(n, number(-second, x), fused(n, number(-first, x), inside))
        whole: Expr = Bitcast(BITS[F32], shifted) - MAGIC_BITS
        value = series(r, [1 / math.factorial(i) for i in range(8)])
        return _scaled(value, whole)
    safe = Select(Unary(U.ISNAN, x), number(0.0, x), inside)
    n = Unary(U.RINT, safe * math.log2(math.e))
    r = (safe - n * first) - n * second
    value = series(r, [1 / math.factorial(i) for i in range(14)])
    return Select(Unary(U.ISNAN, x), x, _scaled(value, Cast(BITS[x.dtype], n)))


def _scaled(value: Expr, n: Expr) -> Expr:
    """``value * 2 ** n``, of an integer below twice what a normal number's exponent may be."""
    half = Binary(B.SHR, n, Constant(1, n.dtype))
    return value * _power_of_two(half, value.dtype) * _power_of_two(n - half, value.dtype)


def log(x: Expr) -> Expr:
    """``n ln 2 + log m`` with m from sqrt(1/2) to sqrt(2), by the series of ``atanh``."""
    dtype, bits = x.dtype, BITS[x.dtype]
    mantissa, bias = MANTISSA[dtype], BIAS[dtype]
    smallest = 2.0 ** (1 - bias)
    tiny = x < smallest
    grown = Select(tiny, x * 2.0 ** (mantissa + 2), x)
    pattern = Bitcast(bits, grown)
    shift = Constant(mantissa, bits)
    offset = Constant((bias << mantissa) - (0x4AFB0D << mantissa - 23), bits)
    exponent = Binary(B.SHR, pattern - offset, shift)
    m = Bitcast(dtype, pattern - Binary(B.SHL, exponent, shift))
    n = Cast(dtype, exponent) - Select(tiny, number(mantissa + 2.0, x), number(0.0, x))
    s = divide(m - 1.0, m + 1.0)
    terms = 6 if dtype is F32 else 12
    rest = s * 2.0 * series(s * s, [1 / (2 * i + 1) for i in range(terms)])
    first, second = LN2[dtype]
    found = n * first + (n * second + rest)
    odd = Select(x < 0.0, number(math.nan, x), x)
    none = Binary(B.EQ, x, number(0.0, x))
    special = Select(none, number(-math.inf, x), odd)
    plain = (x > 0.0) & (x < math.inf)
    return Select(plain, found, special)


def _exp_minus_one(x: Expr) -> Expr:
    terms = 9 if x.dtype is F32 else 16
    small = x * series(x, [1 / math.factorial(i + 1) for i in range(terms)])
    return Select(absolute(x) < 0.5, small, exp(x) - 1.0)


def _log_plus_one(x: Expr) -> Expr:
    """``log(u) * x / (u - 1)`` with ``u = 1 + x`` as it is rounded (Kahan)."""
    u = x + 1.0
    step = u - 1.0
    exact = Binary(B.EQ, step, number(0.0, x))
    whole = u < math.inf
    divisor = Select(exact, number(1.0, x), step)
    return Select(exact, x, Select(whole, log(u) * divide(x, divisor), log(u)))


def sinh(x: Expr) -> Expr:
    size = absolute(x)
    t = _exp_minus_one(size)
    near = (t + divide(t, t + 1.0)) * 0.5
    half = exp(size * 0.5)
    return with_sign(Select(size < 20.0, near, half * (half * 0.5)), x)


def cosh(x: Expr) -> Expr:
    size = absolute(x)
    once, half = exp(size), exp(size * 0.5)
    near = (once + divide(1.0, once)) * 0.5
    return Select(size < 20.0, near, half * (half * 0.5))


def tanh(x: Expr) -> Expr:
    size = absolute(x)
    t = _exp_minus_one(size * 2.0)
    near = Select(size > 22.0, number(1.0, x), divide(t, t + 2.0))
    return with_sign(near, x)


def asinh(x: Expr) -> Expr:
    size = absolute(x)
    square = size * size
    near = _log_plus_one(size + divide(square, root(square + 1.0) + 1.0))
    far = log(size) + math.log(2)
    return with_sign(Select(size < 1e9, near, far), x)


def acosh(x: Expr) -> Expr:
    t = x - 1.0
    near = _log_plus_one(t + root(t * 2.0 + t * t))
    found = Select(x > 1e9, log(x) + math.log(2), near)
    return Select(x < 1.0, number(math.nan, x), found)


def atanh(x: Expr) -> Expr:
    size = absolute(x)
    return with_sign(_log_plus_one(divide(size * 2.0, number(1.0, x) - size)) * 0.5, x)


def erf(x: Expr) -> Expr:
    """In float32 fits, without quotients or branches; in float64 a series of positive terms."""
    size = absolute(x)
    square = size * size
    factor = 2 / math.sqrt(math.pi)
    if x.dtype is F32:
        near = MultiplyAdd(series(square, ERF_NEAR), size, size)
        far = number(1.0, x) - exp(series(size, ERF_FAR) * size)
        return with_sign(Select(size < ERF_SPLIT, near, far), x)
    terms = [1.0]
    for i in range(1, 100):
        terms.append(terms[-1] * 2 / (2 * i + 1))
    bounded = Select(size < 6.0, size, number(6.0, x))
    inside = bounded * bounded
    found = bounded * series(inside, terms) * exp(Unary(U.NEG, inside)) * factor
    ended = Select(size > 6.0, number(1.0, x), Select(found > 1.0, number(1.0, x), found))
    return Select(Unary(U.ISNAN, x), x, with_sign(ended, x))


def power(x: Expr, y: Expr) -> Expr:
    """``exp(y log |x|)`` in float64, and what C says of signs, ones and zeros."""
    dtype = x.dtype
    a, b = (each if dtype is F64 else Cast(F64, each) for each in (x, y))
    size, nought, one = absolute(a), number(0.0, a), number(1.0, a)
    found = exp(b * log(size))
    whole = Binary(B.EQ, Unary(U.RINT, b), b)
    half = b * 0.5
    odd = whole & Binary(B.NE, Unary(U.RINT, half), half)
    negative = Bitcast(DType.INT64, a) < 0
    signed = Select(negative & odd, Unary(U.NEG, found), found)
    known = whole | (a >= 0.0) | Binary(B.EQ, size, number(math.inf, a)) | Unary(U.ISNAN, a)
    signed = Select(known, signed, number(math.nan, a))
    sure = Binary(B.EQ, b, nought) | Binary(B.EQ, a, one)
    minus = Binary(B.EQ, a, number(-1.0, a)) & Unary(U.ISINF, b)
    found = Select(sure | minus, one, signed)
    return found if dtype is F64 else Cast(dtype, found)


def remainder(x: Expr, y: Expr) -> Expr:
    """``x`` less a multiple of ``y``, with the sign of ``x``; exact where the multiple is."""
    dtype = x.dtype
    a, b = (each if dtype is F64 else Cast(F64, each) for each in (x, y))
    size = absolute(b)
    q = Unary(U.TRUNC, divide(absolute(a), size))
    r = absolute(a) - q * size
    r = Select(r < 0.0, r + size, Select(r >= size, r - size, r))
    usual = (size < math.inf) & (absolute(a) < math.inf)
    kept = (absolute(a) < math.inf) & Binary(B.EQ, size, number(math.inf, a))
    r = Select(usual, r, Select(kept, absolute(a), number(math.nan, a)))
    found = with_sign(r, a)
    return found if dtype is F64 else Cast(dtype, found)


def modulo(x: Expr, y: Expr) -> Expr:
    """As ``remainder``, with the sign of ``y``."""
    r = remainder(x, y)
    nought = number(0.0, x)
    apart = Binary(B.NE, r < 0.0, y < 0.0) & Binary(B.NE, r, nought)
    return Select(Binary(B.EQ, r, nought), with_sign(r * 0.0, y), Select(apart, r + y, r))


def floor_quotient(x: Expr, y: Expr) -> Expr:
    return Unary(U.FLOOR, divide(x, y))


FUNCTIONS: Mapping[U, Callable[[Expr], Expr]] = {
    U.EXP: exp,
    U.LOG: log,
    U.SIN: lambda x: turned(x, 0),
    U.COS: lambda x: turned(x, 1),
    U.TAN: tan,
    U.ASIN: asin,
    U.ACOS: acos,
    U.ATAN: atan,
    U.SINH: sinh,
    U.COSH: cosh,
    U.TANH: tanh,
    U.ASINH: asinh,
    U.ACOSH: acosh,
    U.ATANH: atanh,
    U.ERF: erf,
}
BINARY: Mapping[B, Callable[[Expr, Expr], Expr]] = {
    B.POW: power,
    B.REM: remainder,
    B.MOD: modulo,
    B.FLOORDIV: floor_quotient,
}
