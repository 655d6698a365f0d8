"""Scales and zero points of activations, weights and biases."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ....graph.ir import Array
from .observe import Range

__all__ = [
    *("BIAS_LIMIT", "SMALLEST_SCALE", "Quantization", "Weights"),
    *("activation_scale", "quantize_weights"),
]

SMALLEST_SCALE = 1e-12
BIAS_LIMIT = 1 << 30
"""Half of int32: the other half is for the sum of products."""


@frozen
class Quantization:
    """A real value is ``(q - zero_point) * scale``; ``zero_point`` of int8."""

    scale: np.float32
    zero_point: int

    @property
    def limits(self) -> Range:
        """The smallest and largest value of int8."""
        low, high = (float(self.scale) * (q - self.zero_point) for q in (-128, 127))
        return low, high

    def rounded(self, values: Array) -> Array:
        """float32: what is left of ``values``."""
        low, high = -128 - self.zero_point, 127 - self.zero_point
        return np.clip(np.rint(values / self.scale), low, high) * self.scale


class Weights(NamedTuple):
    """int8 weights, a scale for each output channel, and the bias in units of input scale times
    those, if there is one.  factors: of weights of 4 bits, what each is a multiple of.
    """

    integers: NDArray[np.int8]
    scales: NDArray[np.float32]
    bias: NDArray[np.int32] | None
    factors: NDArray[np.int8] | None = None


def activation_scale(limits: Range) -> Quantization:
    """256 values over ``limits``, which hold 0; one of the values is exactly 0."""
    low, high = min(limits[0], 0.0), max(limits[1], 0.0)
    if high - low < 255 * SMALLEST_SCALE:
        return Quantization(np.float32(1), -128 if low == 0 else 0)
    scale = np.float32((high - low) / 255)
    return Quantization(scale, int(np.clip(np.rint(-128 - low / scale), -128, 127)))


def quantize_weights(
    weights: Array, bias: Array | None, x_scale: np.float32, axis: int, per_channel: bool
) -> Weights:
    """Symmetric int8 weights from -127 to 127, float32 scales, and the bias in units of ``x_scale``
    times those.

    weights: float32, output channels along ``axis``.  The scales are one for each channel; equal
    unless ``per_channel``.  A scale is larger than the weights need where the bias would not fit.
    """
    others = tuple(each for each in range(weights.ndim) if each != axis)
    largest = np.abs(weights).max(axis=others).astype(np.float64)
    if not per_channel:
        largest = np.full_like(largest, largest.max())
    needed = np.zeros_like(largest)
    if bias is not None:
        needed = np.abs(bias.astype(np.float64)) / float(x_scale) / BIAS_LIMIT
        if not per_channel:
            needed = np.full_like(needed, needed.max())
    scales = np.maximum(np.maximum(largest / 127, needed), SMALLEST_SCALE)
    scales = np.where((largest == 0) & (needed == 0), 1.0, scales).astype(np.float32)
    shape = [1] * weights.ndim
    shape[axis] = -1
    integers = np.clip(np.rint(weights / scales.reshape(shape)), -127, 127).astype(np.int8)
    if bias is None:
        return Weights(integers, scales, None)
    units = scales.astype(np.float64) * float(x_scale)
    return Weights(integers, scales, np.rint(bias.astype(np.float64) / units).astype(np.int32))
