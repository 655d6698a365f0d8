"""TensorFlow Lite's fixed-point arithmetic, from its definition.

Source: ``SaturatingRoundingDoublingHighMul`` and ``RoundingDivideByPOT`` of gemmlowp, as
``MultiplyByQuantizedMultiplier`` of TensorFlow Lite's reference kernels joins them.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["any_parameters", "multiply_by_quantized_multiplier"]

Numbers = NDArray[np.int64]


def multiply_by_quantized_multiplier(x: Numbers, multiplier: Numbers, shift: Numbers) -> Numbers:
    """``x * multiplier / 2^31 * 2^shift``, rounded twice; |x * 2^max(shift, 0)| < 2^32."""
    product = x * (1 << np.maximum(shift, 0)) * multiplier
    nudged = product + np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    # C++ divides towards 0.
    high = np.where(nudged >= 0, nudged >> 31, -(-nudged >> 31))
    exponent = np.maximum(-shift, 0)
    mask = (1 << exponent) - 1
    remainder, threshold = high & mask, (mask >> 1) + (high < 0)
    return (high >> exponent) + (remainder > threshold)


def any_parameters(rng: np.random.Generator, count: int) -> tuple[Numbers, Numbers, Numbers]:
    """Sums below 2^24, multipliers, shifts, int64[count]: any, corners, ties of each rounding."""
    kinds = (_anything, _corners, _first_ties, _second_ties)
    parts = [kind(rng, count // len(kinds)) for kind in kinds]
    x, multiplier, shift = (np.concatenate(each) for each in zip(*parts, strict=True))
    return np.clip(x, 1 - (1 << 24), (1 << 24) - 1), multiplier, shift


def _anything(rng: np.random.Generator, count: int) -> tuple[Numbers, Numbers, Numbers]:
    """Most results are near int8."""
    shift = rng.integers(-24, 8, count)
    x = rng.uniform(-300, 300, count) * 2.0 ** (1 - shift)
    return x.astype(np.int64), rng.integers(1 << 30, 1 << 31, count), shift


def _corners(rng: np.random.Generator, count: int) -> tuple[Numbers, Numbers, Numbers]:
    multipliers = [0, 1 << 30, (1 << 30) + 1, 3 << 29, (1 << 31) - 2, (1 << 31) - 1]
    sums = [0, 1, 2, 3, 127, 128, (1 << 17) - 1, 1 << 17, (1 << 24) - 2, (1 << 24) - 1]
    x = rng.choice(sums, count) * rng.choice([-1, 1], count)
    return x, rng.choice(multipliers, count), rng.integers(-24, 8, count)


def _first_ties(rng: np.random.Generator, count: int) -> tuple[Numbers, Numbers, Numbers]:
    """Odd multiples of 2^a and of 2^(30 - a)."""
    a = rng.integers(0, 24, count)
    factor = (1 << a) + (rng.integers(0, 1 << 23, count) % (1 << a) | (a > 0))
    x = rng.integers(0, 1 << 23, count) % (1 << (24 - a)) | 1
    x = (x << a) * rng.choice([-1, 1], count)
    return x, factor << (30 - a), rng.integers(-17, 1, count)


def _second_ties(rng: np.random.Generator, count: int) -> tuple[Numbers, Numbers, Numbers]:
    """Odd multiples of a half, by a multiplier of one half."""
    shift = rng.integers(-14, 0, count)
    odd = 2 * rng.integers(-300, 300, count) + 1
    near = rng.choice([-1, 0, 0, 0, 1], count)
    return (odd << -shift) + near, np.full(count, 1 << 30), shift
