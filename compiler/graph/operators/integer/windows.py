"""Windows and borders of int8 images: pools, upsampling, padding."""

from collections.abc import Sequence
from math import isfinite

import numpy as np

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ...types import TensorType
from ..protocol import Array, Opaque, require
from .rules import F32, Pads, Pair, check, is_int8, require_image, sliding_windows, window_counts

__all__ = ["AveragePool2d", "MaxPool2d", "Pad", "PaddedWindows", "Upsample2d"]


@frozen
class PaddedWindows(Opaque):
    """A result for each window of an image: int8[1, H, W, C] to int8[1, OH, OW, C]."""

    kernel: Pair
    strides: Pair
    pads: Pads

    def __post_init__(self) -> None:
        check(self, min(self.kernel) >= 1, "a kernel of at least 1x1")
        check(self, min(self.strides) >= 1, "strides of at least 1")
        check(self, min(self.pads) >= 0, "pads of at least 0")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when no window fits the image."""
        x = require_image(self, inputs)
        height, width = window_counts(x.shape, self.kernel, self.strides, self.pads)
        return (TensorType((1, height, width, x.shape[3]), DType.INT8),)


@frozen
class MaxPool2d(PaddedWindows):
    """Largest of each window; padding never wins.  int8[1, H, W, C] to int8."""

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Window by window, padded with the lowest value."""
        windows = sliding_windows(inputs[0], self.kernel, self.strides, self.pads, -128)
        return (windows.max(axis=(4, 5)).astype(np.int8),)


@frozen
class Upsample2d(Opaque):
    """Each pixel ``factors`` times, down and across: int8[1, H, W, C] to int8."""

    factors: Pair

    def __post_init__(self) -> None:
        check(self, min(self.factors) >= 1, "factors of at least 1")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when it is not given an image."""
        x = require_image(self, inputs)
        (down, across), (_, height, width, channels) = self.factors, x.shape
        return (TensorType((1, height * down, width * across, channels), DType.INT8),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By repeating rows and columns."""
        down, across = self.factors
        return (inputs[0].repeat(down, axis=1).repeat(across, axis=2),)


@frozen
class AveragePool2d(Opaque):
    """``clip(rint(float32(sum(x - x_zero_point)) * scale) + zero_point)``, without padding.

    ``scale`` is float32(input scale / (output scale * window size)).  int8[1, H, W, C] to int8.
    ``x_zero_point`` may be any difference of two zero points.  start: row and column of the first
    window.  size: rows and columns of the result; as many as fit, if none are given.
    """

    kernel: Pair
    strides: Pair
    x_zero_point: int
    zero_point: int
    scale: float
    start: Pair = (0, 0)
    size: Pair | None = None

    def __post_init__(self) -> None:
        check(self, min(self.kernel) >= 1, "a kernel of at least 1x1")
        check(self, min(self.start) >= 0, "a first window at 0 or behind")
        check(self, self.size is None or min(self.size) >= 1, "a size of at least 1x1")
        check(self, min(self.strides) >= 1, "strides of at least 1")
        check(self, -255 <= self.x_zero_point <= 255, "an input zero point in -255..255")
        check(self, is_int8(self.zero_point), "a zero point in -128..127")
        check(self, isfinite(self.scale) and self.scale > 0, "a finite scale above 0")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when the windows do not fit the image."""
        x = require_image(self, inputs)
        row, column = self.start
        shape = (1, x.shape[1] - row, x.shape[2] - column, x.shape[3])
        most = window_counts(shape, self.kernel, self.strides, (0, 0, 0, 0))
        height, width = self.size or most
        require(self, height <= most[0] and width <= most[1], x, "room for all windows")
        return (TensorType((1, height, width, x.shape[3]), DType.INT8),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Sums in int64, then the product in float32."""
        row, column = self.start
        x = inputs[0][:, row:, column:].astype(np.int64)
        windows = sliding_windows(x, self.kernel, self.strides, (0, 0, 0, 0), 0)
        height, width = self.size or windows.shape[1:3]
        windows = windows[:, :height, :width]
        total = (windows - self.x_zero_point).sum(axis=(4, 5)).astype(F32)
        rounded = np.rint(total * F32(self.scale)) + self.zero_point
        return (np.clip(rounded, -128, 127).astype(np.int8),)


@frozen
class Pad(Opaque):
    """A border of ``value``: int8[1, H, W, C] to int8[1, top + H + bottom, left + W + right, C]."""

    pads: Pads
    value: int

    def __post_init__(self) -> None:
        check(self, min(self.pads) >= 0, "pads of at least 0")
        check(self, is_int8(self.value), "a value in -128..127")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when it is not given an image."""
        x = require_image(self, inputs)
        (top, left, bottom, right), (_, height, width, channels) = self.pads, x.shape
        shape = (1, top + height + bottom, left + width + right, channels)
        return (TensorType(shape, DType.INT8),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By ``numpy.pad``."""
        top, left, bottom, right = self.pads
        widths = ((0, 0), (top, bottom), (left, right), (0, 0))
        return (np.pad(inputs[0], widths, constant_values=self.value),)
