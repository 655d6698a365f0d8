"""Powers of floats: ``x ** y = e ** (y log x)``, the logarithm of a float64 in two parts.

Source of the special cases: C17, annex F.10.4.4.
"""

import math

from ....dtypes import DType
from ...llvm.values import Value, constant
from ..arch.arch import Ability
from . import coefficients as table
from .exponentials import exp_of_sum, log, mantissa_and_exponent
from .lanes import Lanes

__all__ = ["power"]

_LN2 = (0.6931471805598903, 5.497923018708371e-14)
"""42 bits of ln 2, and the rest."""

_SPLIT = 2.0**27 + 1


def power(x: Lanes, y: Lanes) -> Lanes:
    """``x ** y``; NaN for a fraction's power of what is negative."""
    if x.dtype is DType.FLOAT32:
        wide_x, wide_y = x.to(DType.FLOAT64), y.to(DType.FLOAT64)
        size = exp_of_sum(wide_y * log(wide_x.magnitude()), None, 0)
        return _signed(wide_x, wide_y, size).to(DType.FLOAT32)
    high, low = _log_in_two(x.magnitude())
    product = y * high
    lost = _product_error(y, high, product) + y * low
    sane = product.magnitude().compare("olt", 1000.0)
    return _signed(x, y, exp_of_sum(product, lost.where(sane, 0.0), 0))


def _signed(x: Lanes, y: Lanes, size: Lanes) -> Lanes:
    """The power, from that of ``|x|``."""
    e = x.e
    whole = _whole(y)
    odd = e.binary("and", whole, _not(x, _whole(y * 0.5)))
    result = (size * -1.0).where(e.binary("and", odd, _negative(x)), size)
    finite_negative = e.binary("and", x.compare("olt", 0.0), x.compare("ogt", -math.inf))
    invalid = e.binary("and", finite_negative, _not(x, whole))
    result = x.of(math.nan).where(invalid, result)
    endless = y.magnitude().compare("oeq", math.inf)
    unit = e.binary("and", x.compare("oeq", -1.0), endless)
    one = e.binary("or", e.binary("or", x.compare("oeq", 1.0), y.compare("oeq", 0.0)), unit)
    return x.of(1.0).where(one, result)


def _whole(y: Lanes) -> Value:
    """True if it is an integer; numbers of 2**52 and more are."""
    magic = y.of(2.0**52).signed_as(y)
    near = (y + magic) - magic
    large = y.magnitude().compare("oge", 2.0**52)
    return y.e.binary("or", large, near.compare("oeq", y))


def _not(like: Lanes, condition: Value) -> Value:
    return like.e.binary("xor", condition, constant(True, DType.BOOL, condition.lanes))


def _negative(x: Lanes) -> Value:
    """True if the sign is set, also that of zero."""
    return x.e.compare("slt", x.bits(), x.integer(0))


def _log_in_two(x: Lanes) -> tuple[Lanes, Lanes]:
    """log x as a sum of two floats, to about 2**-64 of it; x is not negative.

    ``log(1 + f) = 2 s + 2/3 s**3 + s**5 P(s**2)`` with ``s = f / (2 + f)``.
    """
    k, f = mantissa_and_exponent(x)
    bottom = f + 2.0
    bottom_low = f - (bottom - 2.0)
    s = f / bottom
    rest = _product_error(s, bottom, s * bottom)
    s_low = (((f - s * bottom) - rest) - s * bottom_low) / bottom
    z = s * s
    z_low = _product_error(s, s, z) + s * s_low * 2.0
    cube = z * s
    cube_low = _product_error(z, s, cube) + z_low * s + z * s_low
    third, third_low = 0.6666666666666666, 3.700743415417188e-17
    term = cube * third
    term_low = _product_error(cube, cube.of(third), term) + cube_low * third + cube * third_low
    fifth = z * cube * z.polynomial(table.LOG_TAIL_64)
    high, low = _sum(k * _LN2[0], s * 2.0)
    high, more = _sum(high, term)
    low = low + more + (k * _LN2[1] + s_low * 2.0 + (term_low + fifth))
    high, low = _sum(high, low)
    special = x.e.binary("and", x.compare("ogt", 0.0), x.compare("olt", math.inf))
    plain = x.where(x.compare("une", 0.0), -math.inf)
    return high.where(special, plain), low.where(special, 0.0)


def _sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """The sum and its rounding error.  Source: Knuth, TAOCP 2, 4.2.2, theorem B."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product_error(a: Lanes, b: Lanes, product: Lanes) -> Lanes:
    """``a * b - product``, exactly.  Without fused multiply-add: T. J. Dekker (1971)."""
    if a.e.module.target.can(Ability.MULTIPLY_ADD):
        return a.fma(b, -product)
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Lanes) -> tuple[Lanes, Lanes]:
    wide = a * _SPLIT
    high = wide - (wide - a)
    return high, a - high
