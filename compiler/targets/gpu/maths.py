"""Functions of analysis as arithmetic, for machines that have no library of them.

Every function becomes an expression of sums, products, quotients, square roots, bits and
selections, of float32 or float64; those of 16-bit floats are computed in float32.  Reductions of
arguments are Cody and Waite's (Software Manual for the Elementary Functions, 1980), what is left is
a Taylor series; erf in float32 is two fits.
Arguments of trigonometric functions lose accuracy beyond 2^20.
"""

import math
from collections.abc import Callable, Mapping, Sequence

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

__all__ = ["expanded", "with_plain_functions"]

F32, F64 = DType.FLOAT32, DType.FLOAT64
NARROW = (DType.FLOAT16, DType.BFLOAT16)
MANTISSA = {F32: 23, F64: 52}
BIAS = {F32: 127, F64: 1023}
BITS = {F32: DType.INT32, F64: DType.INT64}
LN2 = {
    F32: (0.693359375, -2.12194440054690583e-4),
    F64: (6.93147180369123816490e-1, 1.90821492927058770002e-10),
}
"""ln 2 in two parts; products of the first with small integers are exact."""
HALF_PI = (1.57079632673412561417, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
"""pi / 2 in three parts of 33 bits."""
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
    inverse = _number(float(np.float32(1.0) / np.float32(c.value)), x)
    first = x * inverse
    rest = MultiplyAdd(Unary(U.NEG, first), c, x)
    # An infinite one has no rest, and -0 stays.
    wrong = _absolute(rest) > 0.0
    if abs(c.value) < 1.0:
        wrong = wrong & (_absolute(rest) < math.inf)
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


def _number(value: float, like: Expr) -> Constant:
    return Constant(value, like.dtype)


def _absolute(x: Expr) -> Expr:
    return Unary(U.ABS, x)


def _root(x: Expr) -> Expr:
    return Unary(U.SQRT, x)


def _divide(a: Expr | float, b: Expr) -> Expr:
    return Binary(B.DIV, _number(a, b) if isinstance(a, float) else a, b)


def _with_sign(size: Expr, x: Expr) -> Expr:
    """``size`` with the sign of ``x``, also where that is -0."""
    bits = BITS[x.dtype]
    sign = Constant(-(1 << 8 * bits.bytes - 1), bits)
    return Bitcast(x.dtype, Bitcast(bits, size) | (Bitcast(bits, x) & sign))


def _series(x: Expr, coefficients: Sequence[float]) -> Expr:
    """``c[0] + x * (c[1] + x * ...)``."""
    total: Expr = _number(coefficients[-1], x)
    for each in reversed(coefficients[:-1]):
        total = _fused(total, x, _number(each, x))
    return total


def _fused(a: Expr, b: Expr, c: Expr) -> Expr:
    """``a * b + c``, in float32 rounded once."""
    return MultiplyAdd(a, b, c) if a.dtype is F32 else a * b + c


def _power_of_two(n: Expr, dtype: DType) -> Expr:
    """``2 ** n`` of an integer that gives a normal number."""
    shift = Constant(MANTISSA[dtype], n.dtype)
    return Bitcast(dtype, Binary(B.SHL, n + BIAS[dtype], shift))


def exp(x: Expr) -> Expr:
    """``2^n * exp(r)`` with ``|r| <= ln 2 / 2``, scaled in two steps: one might overflow."""
    high, low = (104.0, -104.0) if x.dtype is F32 else (746.0, -746.0)
    inside = Select(x < low, _number(low, x), Select(x > high, _number(high, x), x))
    first, second = LN2[x.dtype]
    if x.dtype is F32:
        # NaN stays what it is: its n is any number.
        shifted = MultiplyAdd(inside, _number(math.log2(math.e), x), _number(MAGIC, x))
        n: Expr = shifted - MAGIC
        r = _fused(n, _number(-second, x), _fused(n, _number(-first, x), inside))
        whole: Expr = Bitcast(BITS[F32], shifted) - MAGIC_BITS
        value = _series(r, [1 / math.factorial(i) for i in range(8)])
        return _scaled(value, whole)
    safe = Select(Unary(U.ISNAN, x), _number(0.0, x), inside)
    n = Unary(U.RINT, safe * math.log2(math.e))
    r = (safe - n * first) - n * second
    value = _series(r, [1 / math.factorial(i) for i in range(14)])
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
    n = Cast(dtype, exponent) - Select(tiny, _number(mantissa + 2.0, x), _number(0.0, x))
    s = _divide(m - 1.0, m + 1.0)
    terms = 6 if dtype is F32 else 12
    rest = s * 2.0 * _series(s * s, [1 / (2 * i + 1) for i in range(terms)])
    first, second = LN2[dtype]
    found = n * first + (n * second + rest)
    odd = Select(x < 0.0, _number(math.nan, x), x)
    none = Binary(B.EQ, x, _number(0.0, x))
    special = Select(none, _number(-math.inf, x), odd)
    plain = (x > 0.0) & (x < math.inf)
    return Select(plain, found, special)


def _exp_minus_one(x: Expr) -> Expr:
    terms = 9 if x.dtype is F32 else 16
    small = x * _series(x, [1 / math.factorial(i + 1) for i in range(terms)])
    return Select(_absolute(x) < 0.5, small, exp(x) - 1.0)


def _log_plus_one(x: Expr) -> Expr:
    """``log(u) * x / (u - 1)`` with ``u = 1 + x`` as it is rounded (Kahan)."""
    u = x + 1.0
    step = u - 1.0
    exact = Binary(B.EQ, step, _number(0.0, x))
    whole = u < math.inf
    divisor = Select(exact, _number(1.0, x), step)
    return Select(exact, x, Select(whole, log(u) * _divide(x, divisor), log(u)))


def sinh(x: Expr) -> Expr:
    size = _absolute(x)
    t = _exp_minus_one(size)
    near = (t + _divide(t, t + 1.0)) * 0.5
    half = exp(size * 0.5)
    return _with_sign(Select(size < 20.0, near, half * (half * 0.5)), x)


def cosh(x: Expr) -> Expr:
    size = _absolute(x)
    once, half = exp(size), exp(size * 0.5)
    near = (once + _divide(1.0, once)) * 0.5
    return Select(size < 20.0, near, half * (half * 0.5))


def tanh(x: Expr) -> Expr:
    size = _absolute(x)
    t = _exp_minus_one(size * 2.0)
    near = Select(size > 22.0, _number(1.0, x), _divide(t, t + 2.0))
    return _with_sign(near, x)


def asinh(x: Expr) -> Expr:
    size = _absolute(x)
    square = size * size
    near = _log_plus_one(size + _divide(square, _root(square + 1.0) + 1.0))
    far = log(size) + math.log(2)
    return _with_sign(Select(size < 1e9, near, far), x)


def acosh(x: Expr) -> Expr:
    t = x - 1.0
    near = _log_plus_one(t + _root(t * 2.0 + t * t))
    found = Select(x > 1e9, log(x) + math.log(2), near)
    return Select(x < 1.0, _number(math.nan, x), found)


def atanh(x: Expr) -> Expr:
    size = _absolute(x)
    return _with_sign(_log_plus_one(_divide(size * 2.0, _number(1.0, x) - size)) * 0.5, x)


def _quadrant(x: Expr) -> tuple[Expr, Expr]:
    """``x`` less the nearest multiple of pi / 2, in float64, and that multiple's number."""
    wide = x if x.dtype is F64 else Cast(F64, x)
    n = Unary(U.RINT, wide * (2 / math.pi))
    r = ((wide - n * HALF_PI[0]) - n * HALF_PI[1]) - n * HALF_PI[2]
    return Select(_absolute(wide) < math.inf, r, _number(math.nan, wide)), Cast(DType.INT64, n)


def _sine_and_cosine(r: Expr, dtype: DType) -> tuple[Expr, Expr]:
    near = Cast(dtype, r) if dtype is not F64 else r
    square = near * near
    terms = 6 if dtype is F32 else 10
    signs = [(-1) ** i for i in range(terms)]
    odd = [sign / math.factorial(2 * i + 1) for i, sign in enumerate(signs)]
    even = [sign / math.factorial(2 * i) for i, sign in enumerate(signs)]
    return near * _series(square, odd), _series(square, even)


def _turned(x: Expr, quarters: int) -> Expr:
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
    return Select(odd, Unary(U.NEG, _divide(cosine, sine)), _divide(sine, cosine))


def atan(x: Expr) -> Expr:
    """By that of ``1 / x`` beyond 1, and of ``(x - 1) / (x + 1)`` beyond tan(pi / 8)."""
    size = _absolute(x)
    large = size > 1.0
    inner = Select(large, _divide(1.0, size), size)
    middle = inner > 0.4142135623730951
    t = Select(middle, _divide(inner - 1.0, inner + 1.0), inner)
    terms = 10 if x.dtype is F32 else 23
    found = t * _series(t * t, [(-1) ** i / (2 * i + 1) for i in range(terms)])
    found = Select(middle, found + math.pi / 4, found)
    return _with_sign(Select(large, _number(math.pi / 2, x) - found, found), x)


def asin(x: Expr) -> Expr:
    one = _number(1.0, x)
    return atan(_divide(x, _root((one - x) * (x + 1.0))))


def acos(x: Expr) -> Expr:
    one = _number(1.0, x)
    return atan(_root(_divide(one - x, x + 1.0))) * 2.0


def erf(x: Expr) -> Expr:
    """In float32 fits, without quotients or branches; in float64 a series of positive terms."""
    size = _absolute(x)
    square = size * size
    factor = 2 / math.sqrt(math.pi)
    if x.dtype is F32:
        near = MultiplyAdd(_series(square, ERF_NEAR), size, size)
        far = _number(1.0, x) - exp(_series(size, ERF_FAR) * size)
        return _with_sign(Select(size < ERF_SPLIT, near, far), x)
    terms = [1.0]
    for i in range(1, 100):
        terms.append(terms[-1] * 2 / (2 * i + 1))
    bounded = Select(size < 6.0, size, _number(6.0, x))
    inside = bounded * bounded
    found = bounded * _series(inside, terms) * exp(Unary(U.NEG, inside)) * factor
    ended = Select(size > 6.0, _number(1.0, x), Select(found > 1.0, _number(1.0, x), found))
    return Select(Unary(U.ISNAN, x), x, _with_sign(ended, x))


def power(x: Expr, y: Expr) -> Expr:
    """``exp(y log |x|)`` in float64, and what C says of signs, ones and zeros."""
    dtype = x.dtype
    a, b = (each if dtype is F64 else Cast(F64, each) for each in (x, y))
    size, nought, one = _absolute(a), _number(0.0, a), _number(1.0, a)
    found = exp(b * log(size))
    whole = Binary(B.EQ, Unary(U.RINT, b), b)
    half = b * 0.5
    odd = whole & Binary(B.NE, Unary(U.RINT, half), half)
    negative = Bitcast(DType.INT64, a) < 0
    signed = Select(negative & odd, Unary(U.NEG, found), found)
    known = whole | (a >= 0.0) | Binary(B.EQ, size, _number(math.inf, a)) | Unary(U.ISNAN, a)
    signed = Select(known, signed, _number(math.nan, a))
    sure = Binary(B.EQ, b, nought) | Binary(B.EQ, a, one)
    minus = Binary(B.EQ, a, _number(-1.0, a)) & Unary(U.ISINF, b)
    found = Select(sure | minus, one, signed)
    return found if dtype is F64 else Cast(dtype, found)


def remainder(x: Expr, y: Expr) -> Expr:
    """``x`` less a multiple of ``y``, with the sign of ``x``; exact where the multiple is."""
    dtype = x.dtype
    a, b = (each if dtype is F64 else Cast(F64, each) for each in (x, y))
    size = _absolute(b)
    q = Unary(U.TRUNC, _divide(_absolute(a), size))
    r = _absolute(a) - q * size
    r = Select(r < 0.0, r + size, Select(r >= size, r - size, r))
    usual = (size < math.inf) & (_absolute(a) < math.inf)
    kept = (_absolute(a) < math.inf) & Binary(B.EQ, size, _number(math.inf, a))
    r = Select(usual, r, Select(kept, _absolute(a), _number(math.nan, a)))
    found = _with_sign(r, a)
    return found if dtype is F64 else Cast(dtype, found)


def modulo(x: Expr, y: Expr) -> Expr:
    """As ``remainder``, with the sign of ``y``."""
    r = remainder(x, y)
    nought = _number(0.0, x)
    apart = Binary(B.NE, r < 0.0, y < 0.0) & Binary(B.NE, r, nought)
    return Select(Binary(B.EQ, r, nought), _with_sign(r * 0.0, y), Select(apart, r + y, r))


def floor_quotient(x: Expr, y: Expr) -> Expr:
    return Unary(U.FLOOR, _divide(x, y))


FUNCTIONS: Mapping[U, Callable[[Expr], Expr]] = {
    U.EXP: exp,
    U.LOG: log,
    U.SIN: lambda x: _turned(x, 0),
    U.COS: lambda x: _turned(x, 1),
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
