"""Sigmoid and hyperbolic tangent of int16 in fixed point, as tables of all 65,536.

``x`` stands for ``x * 2**(bits - 15)``, where ``bits`` is the number of integer bits.  Source:
gemmlowp, ``fixedpoint.h``, for words of 16 bits.
"""

from typing import Any

import numpy as np

from ...graph.ir import Array

__all__ = ["sigmoids", "tangents"]

LOWEST, ONE = -(1 << 15), (1 << 15) - 1
EXPONENTIALS = (25520, 19875, 12055, 4435, 600, 11, 0)
"""``exp(-2**k)`` for k from -2, without integer bits."""
VALUES = np.arange(LOWEST, ONE + 1, dtype=np.int64)


def sigmoids(bits: int) -> Array:
    """``1 / (1 + exp(-x))`` without integer bits, of x from the least on."""
    inverse = _doubled(_inverse(_exponential(-np.abs(VALUES), bits)), 1)
    result = np.where(VALUES > 0, inverse, ONE - inverse)
    return np.where(VALUES == 0, 1 << 14, result)


def tangents(bits: int) -> Array:
    """``tanh(x)`` without integer bits, of x from the least on."""
    share = _inverse(_exponential(-np.abs(VALUES), bits + 1))
    result = _doubled(share - (1 << 13), 2)
    return np.sign(VALUES) * result


def _exponential(x: Array, bits: int) -> Array:
    """``exp(x)`` of ``x <= 0`` without integer bits."""
    fraction = 15 - bits
    quarter = 1 << (fraction - 2)
    part = (x & (quarter - 1)) - quarter
    result = _exponential_of_quarter(_doubled(part, bits))
    rest = part - x
    for place, factor in enumerate(EXPONENTIALS):
        if bits > place - 2:
            bit = rest & (1 << (fraction + place - 2))
            result = np.where(bit != 0, _product(result, factor), result)
    if bits > 5:
        result = np.where(x < -(1 << (fraction + 5)), 0, result)
    return np.where(x == 0, ONE, result)


def _exponential_of_quarter(x: Array) -> Array:
    """``exp(x)`` for ``-1/4 <= x < 0``, by Taylor's series around -1/8."""
    middle, third = 28918, 10923
    x = x + (1 << 12)
    square = _product(x, x)
    cube, fourth = _product(square, x), _product(square, square)
    rest = _halved(_product(_halved(fourth, 2) + cube, third) + square, 1)
    return (middle + _product(x + rest, middle)).clip(LOWEST, ONE)


def _inverse(x: Array) -> Array:
    """``2 / (1 + x)`` of ``x`` in 0..1, with 2 integer bits; x: without any."""
    half = (x + (ONE + 1)) >> 1
    result = _product(half, -15420) + 23130
    for _ in range(3):
        error = (1 << 13) - _product(half, result)
        result = result + _doubled(_product(result, error), 2)
    return result


def _product(a: Array, b: Any) -> Array:
    return np.asarray((a * b + (1 << 14)) >> 15)


def _halved(x: Array, times: int) -> Array:
    """Rounded half away from zero."""
    sign = np.where(x < 0, -1, 0)
    return np.asarray((x + (1 << (times - 1)) + sign) >> times)


def _doubled(x: Array, times: int) -> Array:
    return (x << times).clip(LOWEST, ONE)
