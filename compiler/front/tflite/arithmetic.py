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
    "leading_zeros",
    "reciprocal",
    "rounded_shift",
]

LOWEST, ONE = -(1 << 31), (1 << 31) - 1
EXPONENTIALS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""``exp(-2**k)`` for k from -2, without integer bits."""

Fixed = Any
"""An array of NumPy's, or a ``Term``: both have the same operators."""


def high_product(a: Fixed, b: Fixed | int) -> Fixed:
    """``a * b / 2**31``, rounded half up."""
    return (a * b + (1 << 30)) >> 31


def rounded_shift(x: Array, amount: int) -> Array:
    """``x / 2**amount``, rounded half away from zero."""
    if not amount:
        return x
    return np.asarray((x + (1 << (amount - 1)) + (x >> 63)) >> amount)


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
