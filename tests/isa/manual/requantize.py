"""Requantisation in whole numbers, as the manual's text has it; no floating point."""

from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

FAR = 1 << 20
"""More than any limit and zero point: what is larger is clipped alike."""


def requantize(
    values: NDArray[np.int64],
    bias: NDArray[np.int64],
    scale: NDArray[np.uint32],
    zero_point: int,
    low: int,
    high: int,
) -> NDArray[np.int64]:
    """The int8 results of int32 ``values``, lane by lane; ``scale``: bits of float32s."""
    total = (values + bias + (1 << 31)) % (1 << 32) - (1 << 31)
    magnitude, exponent = _to_24_bits(np.abs(total))
    field = scale.astype(np.int64) >> 23 & 255
    significand = np.where(field > 0, scale & 0x7FFFFF | 0x800000, 0).astype(np.int64)
    product, more = _to_24_bits(magnitude * significand)
    # A float32 of exponent field f is its 24-bit significand times 2^(f - 150).
    shift = exponent + more + field - 150
    rounded = _scaled(product, shift)
    negative = (total < 0) != (scale >> 31 == 1)
    return np.clip(np.where(negative, -rounded, rounded) + zero_point, low, high)


def requantize_fixed(
    values: NDArray[np.int64],
    word: NDArray[np.int64],
    multiplier: NDArray[np.uint32],
    zero_point: int,
    low: int,
    high: int,
) -> NDArray[np.int64]:
    """With the rounding FIXED: ``word`` int32, the bits of bias and shift."""
    bias = word % (1 << 27)
    bias = np.where(bias >= 1 << 26, bias - (1 << 27), bias)
    power = 7 - (word % (1 << 32) >> 27)
    total = (values + bias + (1 << 31)) % (1 << 32) - (1 << 31)
    a = np.minimum(np.abs(total) * 2 ** np.maximum(power, 0), (1 << 24) - 1)
    product = a * (multiplier.astype(np.int64) % (1 << 31))
    x = (product + (1 << 30) - np.where(total < 0, 1, 0)) // (1 << 31)
    divisor = 2 ** np.maximum(-power, 0)
    y = (x + divisor // 2) // divisor
    return np.clip(np.where(total < 0, -y, y) + zero_point, low, high)


def quotient(scale: NDArray[np.uint32], total: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bits of ``scale / total``, both rounded to 24 significant bits; 0 where that is subnormal."""
    found = []
    for bits, whole in zip(scale.tolist(), total.tolist(), strict=True):
        field = bits >> 23 & 255
        divisor = Fraction(int(np.float32(whole)))
        value, power = (bits & 0x7FFFFF | 0x800000) / divisor, 0
        while value < 1 << 23:
            value, power = 2 * value, power + 1
        while value >= 1 << 24:
            value, power = value / 2, power - 1
        left = field - power
        found.append((left << 23) + round(value) - 0x800000 if field > 0 and left > 0 else 0)
    return np.array(found, np.int64)


def over_root(scale: NDArray[np.uint32], total: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    """Bits of ``scale * 2^shift / sqrt(total)``, by the manual's table."""
    found = []
    for bits, t in zip(scale.tolist(), total.tolist(), strict=True):
        e = t.bit_length() - 1
        j, k = divmod((t - (1 << e)) * (1 << 17) // (1 << e), 1024)
        here, there = (isqrt((1 << 47) // ((128 + each) << e % 2)) for each in (j, j + 1))
        r = (min(here + 2, (1 << 20) - 1) - (here - there) * k // 1024) // 8
        n = r * (bits % (1 << 23) + (1 << 23))
        exponent = min((bits >> 23) + shift - e // 2 - (n.bit_length() == 40), 254)
        significand = n >> n.bit_length() - 24
        zero = bits >> 23 == 0 or exponent <= 0
        found.append(0 if zero else (exponent << 23) + significand - (1 << 23))
    return np.array(found, np.int64)


def _to_24_bits(value: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(m, e) with m * 2^e the value rounded to 24 significant bits, half to even; e >= 0."""
    bits = np.frexp(value.astype(np.float64))[1].astype(np.int64)
    dropped = np.maximum(bits - 24, 0)
    return _half_to_even(value, dropped), dropped


def _half_to_even(value: NDArray[np.int64], dropped: NDArray[np.int64]) -> NDArray[np.int64]:
    """``value / 2^dropped``, rounded; 0 <= dropped < 62."""
    whole = value >> dropped
    rest = value - (whole << dropped)
    half = (np.int64(1) << dropped) >> 1
    up = (rest > half) | ((rest == half) & (whole & 1 == 1) & (dropped > 0))
    return whole + up


def _scaled(value: NDArray[np.int64], shift: NDArray[np.int64]) -> NDArray[np.int64]:
    """``value * 2^shift`` rounded half to even, and no more than ``FAR``."""
    # 40 bits to the right nothing is left of 25; 20 to the left nothing but 0 is small.
    right = _half_to_even(value, np.clip(-shift, 0, 40))
    left = value << np.clip(shift, 0, 30)
    return np.minimum(np.where(shift < 0, right, left), FAR)
