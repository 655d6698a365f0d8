"""Meaning of VECTOR's finish REQUANTIZE, lane by lane, and what PAR holds for each rounding."""

import numpy as np
from numpy.typing import NDArray

__all__ = [
    *("FIXED_BIAS_BITS", "FIXED_MOST_LEFT", "WIDE_LIMIT"),
    *("fixed_parameters", "low_bits", "requantize", "requantize_fixed"),
]

FIXED_BIAS_BITS = 27
"""Bits of a bias for the rounding FIXED, signed; above it in the word's 32 bits is the shift."""
FIXED_MOST_LEFT = 7
"""The power of two where that shift is 0; each one more halves it."""

WIDE_LIMIT = 1 << 19
"""The largest magnitude of a result with the rounding WIDE, before the zero point."""


def low_bits(values: NDArray[np.signedinteger], bits: int) -> NDArray[np.int64]:
    """The low ``bits`` of each value as a signed number."""
    half = 1 << (bits - 1)
    return ((values.astype(np.int64) + half) & ((1 << bits) - 1)) - half


def requantize(
    values: NDArray[np.int32],
    bias: NDArray[np.int32],
    scale: NDArray[np.float32],
    zero_point: int,
    low: int,
    high: int,
) -> NDArray[np.int32]:
    """``clip(rint(float32(values + bias) * scale) + zero_point, low, high)``, lane by lane.

    values: int32[..., block], bias: int32[..., block] (the sum wraps), scale: float32[..., block],
    finite, and positive but where the configuration has ``row_parameters``.  ``rint`` is half to
    even; conversion and product are rounded to float32, half to even. Source: ONNX Runtime's
    QLinearConv on x86-64.
    """
    total = (values + bias).astype(np.float32)
    with np.errstate(over="ignore"):
        rounded = np.rint(total * scale.astype(np.float32)).astype(np.float64)
    return np.clip(rounded + zero_point, low, high).astype(np.int32)


def requantize_fixed(
    values: NDArray[np.int32],
    bias: NDArray[np.int32],
    scale: NDArray[np.float32],
    zero_point: int,
    low: int,
    high: int,
) -> NDArray[np.int32]:
    """``clip((values + b) * multiplier / 2^31 * 2^power + zero_point, low, high)``, lane by lane,
    rounded twice.

    values: int32[..., block]; bias: int32[..., block], scale: float32[..., block], the bits that
    PAR holds, which say other numbers here (``fixed_parameters``).  The sum wraps; its magnitude,
    doubled ``power`` times where that is positive, counts as no more than 2^24 - 1.  The product is
    rounded half up; where ``power`` is negative its magnitude is divided, half up.
    Source: TensorFlow Lite's MultiplyByQuantizedMultiplier, the form with two roundings.
    """
    power = FIXED_MOST_LEFT - (bias.view(np.uint32) >> FIXED_BIAS_BITS).astype(np.int64)
    multiplier = scale.view(np.uint32) & 0x7FFFFFFF
    total = (values + low_bits(bias, FIXED_BIAS_BITS).astype(np.int32)).astype(np.int64)
    negative = total < 0
    magnitude = np.minimum(np.abs(total) << np.maximum(power, 0), (1 << 24) - 1)
    product = (magnitude * multiplier + (1 << 30) - negative) >> 31
    right = np.maximum(-power, 0)
    rounded = (product + (np.int64(1) << right >> 1)) >> right
    result = np.where(negative, -rounded, rounded) + zero_point
    return np.clip(result, low, high).astype(np.int32)


def fixed_parameters(
    bias: NDArray[np.integer], multiplier: NDArray[np.integer], power: NDArray[np.integer]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Bias and scale of PAR for ``(x + bias) * multiplier / 2^31 * 2^power``.

    bias: -2^26 to 2^26 - 1; multiplier: 0 to 2^31 - 1; power: -24 to 7.  All of one shape.
    """
    shift = (FIXED_MOST_LEFT - power.astype(np.int64)) << FIXED_BIAS_BITS
    word = shift | bias.astype(np.int64) & ((1 << FIXED_BIAS_BITS) - 1)
    bits = multiplier.astype(np.uint32)
    return word.astype(np.uint32).view(np.int32), bits.view(np.float32)
