"""Fixed-point functions of gemmlowp's, on NumPy's integers and on terms alike.

All values are int64, of int32's range: ``x`` stands for ``x * 2**(bits - 31)``, where ``bits`` is
the number of integer bits.  Source: gemmlowp, ``fixedpoint.h``; TensorFlow Lite, ``common.h``.
"""

from typing import Any

import numpy as np

from ...graph.formulas import Term
from ...graph.ir import Array

__all__ = [
    "exponential",
    "high_product",
    "inverse_root",
    "leading_zeros",
    "natural_log",
    "reciprocal",
    "rounded_shift",
    "scaled_by",
]

LOWEST, ONE = -(1 << 31), (1 << 31) - 1
SQRT_HALF = 1518500250
EXPONENTIALS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""``exp(-2**k)`` for k from -2, without integer bits."""

Fixed = Any
"""An array of NumPy's, or a ``Term``: both have the same operators."""


def high_product(a: Fixed, b: Fixed | int) -> Fixed:
    """``a * b / 2**31``, rounded half up."""
    return (a * b + (1 << 30)) >> 31


def rounded_shift(x: Fixed, amount: int) -> Fixed:
    """``x / 2**amount``, rounded half away from zero."""
    return (x + (1 << (amount - 1)) + (x >> 63)) >> amount if amount else x


def scaled_by(x: Fixed, multiplier: Fixed, shift: Fixed) -> Fixed:
    """``x * multiplier * 2**(shift - 31)``, rounded twice; each element has its own factors."""
    product = high_product(x << shift.clip(0, 31), multiplier)
    right = (shift * -1).clip(0, 31)
    half, any_ = ((right * 0 + 1) << right) >> 1, right.clip(0, 1)
    return (product + half + (product >> 63) * any_) >> right


def exponential(x: Array, bits: int) -> Array:
    """``exp(x)`` of ``x <= 0`` with ``bits`` integer bits, at most 5; without any."""
    fraction = 31 - bits
    quarter = 1 << (fraction - 2)
    part = (x & (quarter - 1)) - quarter
    result = _exponential_of_quarter(np.clip(part << bits, LOWEST, ONE))
    rest = part - x
    for place, factor in enumerate(EXPONENTIALS):
        if bits > place - 2:
            bit = rest & (1 << (fraction + place - 2))
            result = np.where(bit != 0, high_product(result, factor), result)
    return np.asarray(np.where(x == 0, ONE, result))


def _exponential_of_quarter(x: Array) -> Array:
    """``exp(x)`` for ``-1/4 <= x < 0``, by Taylor's series around -1/8."""
    middle, third = 1895147668, 715827883
    x = x + (1 << 28)
    square = high_product(x, x)
    cube, fourth = high_product(square, x), high_product(square, square)
    rest = high_product(rounded_shift(fourth, 2) + cube, third) + square
    return middle + high_product(x + rounded_shift(rest, 1), middle)


def reciprocal(x: Fixed) -> Fixed:
    """``1 / (1 + x)`` of ``x`` in 0..1, both without integer bits: three steps of Newton's."""
    half = (x + (ONE + 1)) >> 1
    result = high_product(half, -1010580540) + 1515870810
    for _ in range(3):
        error = (high_product(half, result) * -1) + (1 << 29)
        result = result + (high_product(result, error) << 2).clip(LOWEST, ONE)
    return (result << 1).clip(LOWEST, ONE)


def leading_zeros(x: Fixed, ones: Fixed) -> Fixed:
    """Zero bits above the highest one of 32-bit ``x``, above 0; ones: as many ones."""
    result = ones * 32
    for bit in range(31):
        result = result - _whole(x >= (1 << bit), ones)
    return result


def _whole(condition: Fixed, like: Fixed) -> Fixed:
    return condition.cast(like.dtype) if isinstance(condition, Term) else condition * like


def inverse_root(x: Fixed, ones: Fixed) -> tuple[Fixed, Fixed]:
    """Multiplier and shift of ``1 / sqrt(x)`` of ``x`` in 0..2**31 - 1, that of 0 as of 1, by five
    steps of Newton's; ones: as many ones.
    """
    unit, large = _whole(x <= 1, ones), _whole(x >= (1 << 29), ones)
    near = x.clip(2, ONE) >> (large * 2)
    pairs = ((leading_zeros(near, ones) - 1) >> 1) - 1
    shift = large - pairs + 11
    half = (((near << (pairs * 2)) >> 1) + 1) >> 1
    result = ones << 28
    for _ in range(5):
        cube = _doubled(high_product(high_product(result, result), result), 6)
        result = _doubled(high_product(result, 402653184) - high_product(half, cube), 3)
    result = high_product(result, SQRT_HALF) << (shift * -1).clip(0, 31)
    other = ones - unit
    return result * other + unit * ONE, shift.clip(0, 31) * other * -1


def natural_log(x: Term, bits: int) -> Term:
    """The logarithm of ``x >= 1`` with ``bits`` integer bits; with 5.

    By a quotient of polynomials near the fourth root of 1/2, for two ways to normalise ``x``.
    """
    log_two, middle = 1488522236, 1805811301
    ones = x * 0 + 1
    quarter, zeros = 1 << 23, leading_zeros(x, ones)
    first = _doubled(high_product(x << (zeros - 1), SQRT_HALF), 1)
    first_power = ((zeros * -1 + bits) << 25) + quarter
    room = leading_zeros(high_product(x, SQRT_HALF), ones) - 1
    second = (x << room).clip(LOWEST, ONE)
    second_power = ((room * -1 + bits) << 25) - quarter
    part, power = first.minimum(second), first_power.maximum(second_power)
    half_sum = (part + (middle + 1)) >> 1
    away = (part - middle) * 2
    square = high_product(away, away)
    over = high_product(away, part) + high_product(high_product(away, square), 117049297)
    inner = high_product(square, 127690142) + away + 1057819769
    under = high_product(half_sum, inner) + high_product(away, 638450708)
    quotient = high_product(rounded_shift(over, 6), reciprocal(under))
    return _doubled(high_product(power, log_two) + quotient, 1)


def _doubled(x: Fixed, times: int) -> Fixed:
    return (x << times).clip(LOWEST, ONE)
