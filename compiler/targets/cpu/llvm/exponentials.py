"""exp, log and what is made of them, in lanes.

Range reduction: ``x = k ln 2 + r`` with ln 2 in two parts, the first short enough that its
multiples are exact; ``x = 2**k (1 + f)`` with ``1 + f`` between sqrt(1/2) and sqrt(2).  Polynomials
are coefficients.py's.  Source of the reconstruction of log from f: P. T. P. Tang, Table-driven
implementation of the logarithm function (1990), without the table.
"""

import math
from collections.abc import Sequence

from ....dtypes import DType
from ...llvm.values import Value
from . import coefficients as table
from .lanes import Lanes

__all__ = [
    "acosh",
    "asinh",
    "atanh",
    "cosh",
    "erf",
    "exp",
    "exp_of_sum",
    "log",
    "log1p",
    "mantissa_and_exponent",
    "sinh",
    "tanh",
]

_LN2_HIGH = {DType.FLOAT32: 0.693145751953125, DType.FLOAT64: 0.6931471805598903}
_LN2_LOW = {DType.FLOAT32: 1.4286068203094173e-06, DType.FLOAT64: 5.497923018708371e-14}
_LIMITS = {DType.FLOAT32: (-104.0, 89.0), DType.FLOAT64: (-746.0, 712.0)}


def exp(x: Lanes) -> Lanes:
    """e to the x."""
    return exp_of_sum(x, None, 0)


def exp_of_sum(x: Lanes, low: Lanes | None, doublings: int) -> Lanes:
    """e to the ``x + low``, times ``2**doublings``; low is a small part of x."""
    r, k = _reduce(x.at_most(_LIMITS[x.dtype][1]).at_least(_LIMITS[x.dtype][0]))
    if low is not None:
        r = r + low
    return _scale(_expm1_reduced(r) + 1.0, k, doublings)


def _reduce(x: Lanes) -> tuple[Lanes, Value]:
    """(r, k) of ``x = k ln 2 + r``; x is in the limits, or NaN."""
    e = x.e
    magic = _magic(x)
    shifted = x.fma(1 / math.log(2), magic)
    n = shifted - magic
    r = n.fma(-_LN2_HIGH[x.dtype], x)
    r = n.fma(-_LN2_LOW[x.dtype], r)
    return r, e.binary("sub", shifted.bits(), x.of(magic).bits())


def _magic(x: Lanes) -> float:
    """The number whose addition leaves no bits for fractions."""
    return 1.5 * 2.0**x.mantissa_bits


def _expm1_reduced(r: Lanes) -> Lanes:
    q = r.polynomial(table.EXP_32 if r.dtype is DType.FLOAT32 else table.EXP_64)
    return (r * r).fma(q, r)


def _power_of_two(like: Lanes, k: Value) -> Lanes:
    """``2**k`` for a k in the range of normal numbers."""
    e = like.e
    field = e.binary("add", k, like.integer(like.bias))
    return like.from_bits(e.binary("shl", field, like.integer(like.mantissa_bits)))


def _scale(p: Lanes, k: Value, doublings: int) -> Lanes:
    """``p * 2**(k + doublings)``, in two steps, so that subnormal results are rounded once."""
    e = p.e
    if doublings:
        k = e.binary("add", k, p.integer(doublings))
    half = e.binary("ashr", k, p.integer(1))
    rest = e.binary("sub", k, half)
    return p * _power_of_two(p, half) * _power_of_two(p, rest)


def _expm1_positive(x: Lanes) -> Lanes:
    """e to the x, less 1, for x from 0 to 80."""
    r, k = _reduce(x)
    power = _power_of_two(x, k)
    return power.fma(_expm1_reduced(r), power - 1.0)


def log(x: Lanes) -> Lanes:
    """The natural logarithm; -inf of 0, NaN of what is negative."""
    k, f = mantissa_and_exponent(x)
    if x.dtype is DType.FLOAT32:
        y = (f * f * f).fma(f.polynomial(table.LOG_32), k * _LN2_LOW[x.dtype])
        y = (f * f).fma(-0.5, y)
        result = k.fma(_LN2_HIGH[x.dtype], f + y)
    else:
        s = f / (f + 2.0)
        z = s * s
        half_square = f * f * 0.5
        tail = s * (half_square + z * z.polynomial(table.LOG_64)) + k * _LN2_LOW[x.dtype]
        result = k * _LN2_HIGH[x.dtype] - ((half_square - tail) - f)
    return _log_specials(x, result)


def mantissa_and_exponent(x: Lanes) -> tuple[Lanes, Lanes]:
    """(k, f) of ``x = 2**k (1 + f)``, k as a float."""
    e, bits, kind = x.e, x.mantissa_bits, x.bits_dtype
    tiny = x.compare("olt", 2.0 ** (1 - x.bias))
    raw = (x * 2.0**bits).where(tiny, x).bits()
    root = x.of(math.sqrt(0.5)).bits()
    k = e.binary("ashr", e.binary("sub", raw, root), x.integer(bits))
    m = x.from_bits(e.binary("sub", raw, e.binary("shl", k, x.integer(bits))))
    if kind is DType.INT32:
        number = Lanes(e, e.convert("sitofp", k, x.dtype))
    else:
        magic = _magic(x)
        number = x.from_bits(e.binary("add", k, x.of(magic).bits())) - magic
    return (number - float(bits)).where(tiny, number), m - 1.0


def _log_specials(x: Lanes, result: Lanes) -> Lanes:
    result = result.where(x.compare("olt", math.inf), x)
    result = x.of(-math.inf).where(x.compare("oeq", 0.0), result)
    return x.of(math.nan).where(x.compare("olt", 0.0), result)


def log1p(y: Lanes) -> Lanes:
    """``log(1 + y)`` for y that are not negative; what rounding ``1 + y`` lost is put back."""
    u = y + 1.0
    lost = (y - (u - 1.0)) / u
    return (log(u) + lost).where(y.compare("olt", math.inf), y)


def tanh(x: Lanes) -> Lanes:
    """``m / (m + 2)`` with ``m = e**(2|x|) - 1``."""
    limit = 10.0 if x.dtype is DType.FLOAT32 else 20.0
    m = _expm1_positive((x.magnitude() * 2.0).at_most(2 * limit))
    return (m / (m + 2.0)).signed_as(x)


def sinh(x: Lanes) -> Lanes:
    """``(e**x - e**-x) / 2``; a polynomial below 1."""
    a = x.magnitude()
    z = a * a
    near = (z * a).fma(z.polynomial(table.SINH_64), a)
    t = exp_of_sum(a, None, -1)
    far = t - x.of(0.25) / t
    return near.where(a.compare("olt", 1.0), far).signed_as(x)


def cosh(x: Lanes) -> Lanes:
    """``(e**x + e**-x) / 2``."""
    t = exp_of_sum(x.magnitude(), None, -1)
    return t + x.of(0.25) / t


def asinh(x: Lanes) -> Lanes:
    """``log(|x| + sqrt(x**2 + 1))``."""
    a = x.magnitude()
    z = a * a
    near = log1p(a + z / ((z + 1.0).square_root() + 1.0))
    far = log(a) + math.log(2)
    return near.where(a.compare("olt", 2.0**28), far).signed_as(x)


def acosh(x: Lanes) -> Lanes:
    """``log(x + sqrt(x**2 - 1))``; NaN below 1."""
    t = x - 1.0
    near = log1p(t + (t * t + t * 2.0).square_root())
    far = log(x) + math.log(2)
    result = near.where(x.compare("olt", 2.0**28), far)
    return x.of(math.nan).where(x.compare("olt", 1.0), result)


def atanh(x: Lanes) -> Lanes:
    """``log((1 + x) / (1 - x)) / 2``; NaN beyond 1."""
    a = x.magnitude()
    return (log1p(a * 2.0 / (x.of(1.0) - a)) * 0.5).signed_as(x)


def erf(x: Lanes) -> Lanes:
    """The error function: ``x + x P(x**2)``, and ``1 - e**Q(|x|)`` farther out."""
    a = x.magnitude()
    single = x.dtype is DType.FLOAT32
    edge, middle, half = (1.2, 2.57, 1.37) if single else (1.5, 3.75, 2.25)
    small: Sequence[float] = table.ERF_32 if single else table.ERF_64
    large: Sequence[float] = table.ERFC_32 if single else table.ERFC_64
    near = x.fma((a * a).polynomial(small), x)
    u = (a.at_most(middle + half) - middle) * (1 / half)
    far = (x.of(1.0) - exp(u.polynomial(large))).signed_as(x)
    return near.where(a.compare("olt", edge), far)
