"""Integer sums of products: convolution, transposed convolution, dense layers, and the products of
two activations.
"""

from collections.abc import Sequence

import numpy as np

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ...types import TensorType
from ..protocol import Array, Opaque, require, require_inputs
from .rules import (
    Pads,
    Pair,
    check,
    is_int8,
    require_exactly,
    require_image,
    sliding_windows,
    window_counts,
)

__all__ = ["Conv2d", "ConvTranspose2d", "Dense", "RowProducts"]

MOST_TERMS = ((1 << 31) - 1) // 255**2
"""Products of two bytes, each less its zero point, that int32 holds the sum of."""


@frozen
class Conv2d(Opaque):
    """``sum((x - zero_point) * (w - weight_zero_point)) + bias``.

    x: int8[1, H, W, C], w: int8[O, KH, KW, C / groups], bias: int32[O] to int32[1, OH, OW, O].
    Padding reads as ``zero_point``.  Output channels are in ``groups`` too, each of which reads its
    part of the channels.  dilations: rows and columns from tap to tap.
    """

    strides: Pair
    pads: Pads
    groups: int
    zero_point: int
    weight_zero_point: int = 0
    dilations: Pair = (1, 1)

    def __post_init__(self) -> None:
        check(self, min(self.strides) >= 1, "strides of at least 1")
        check(self, min(self.dilations) >= 1, "dilations of at least 1")
        check(self, min(self.pads) >= 0, "pads of at least 0")
        check(self, self.groups >= 1, "groups of at least 1")
        check(self, is_int8(self.zero_point), "a zero point in -128..127")
        check(self, is_int8(self.weight_zero_point), "a weight zero point in -128..127")

    def span(self, kernel: Pair) -> Pair:
        """Rows and columns of a window of ``kernel`` taps."""
        down, across = self.dilations
        return (kernel[0] - 1) * down + 1, (kernel[1] - 1) * across + 1

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when image, weights and bias do not fit."""
        x, weights, _ = require_inputs(self, inputs, 3)
        kernel = _kernel(self, self.groups, inputs)
        height, width = window_counts(x.shape, self.span(kernel), self.strides, self.pads)
        return (TensorType((1, height, width, weights.shape[0]), DType.INT32),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Sums in float64, which holds every int32 exactly."""
        x, weights, bias = inputs
        span = self.span((weights.shape[1], weights.shape[2]))
        shifted = x.astype(np.float64) - self.zero_point
        windows = sliding_windows(shifted, span, self.strides, self.pads, 0)
        windows = windows[..., :: self.dilations[0], :: self.dilations[1]]
        factors = weights.astype(np.float64) - self.weight_zero_point
        if factors.shape[3] == 1 and self.groups == len(factors):
            total = np.einsum("nhwcyx,cyx->nhwc", windows, factors[..., 0])
            return ((total + bias).astype(np.int32),)
        parts = zip(np.split(windows, self.groups, 3), np.split(factors, self.groups), strict=True)
        sums = [np.tensordot(part, kernel, axes=((3, 4, 5), (3, 1, 2))) for part, kernel in parts]
        return ((np.concatenate(sums, axis=3) + bias).astype(np.int32),)


@frozen
class ConvTranspose2d(Opaque):
    """Each ``x - zero_point`` times the kernel, added up ``strides`` apart, and the bias.

    ``y[r, c] = bias + sum((x[i, j] - zero_point) * (w[r + top - i * strides[0], ...] - ...))``.
    x: int8[1, H, W, C], w: int8[O, KH, KW, C / groups], bias: int32[O] to int32[1, OH, OW, O], OH =
    (H - 1) * strides[0] + KH - top - bottom + added[0].
    """

    strides: Pair
    pads: Pads
    added: Pair
    groups: int
    zero_point: int
    weight_zero_point: int = 0

    def __post_init__(self) -> None:
        check(self, min(self.strides) >= 1, "strides of at least 1")
        check(self, min(self.pads) >= 0, "pads of at least 0")
        check(self, min(self.added) >= 0, "added rows and columns of at least 0")
        check(self, self.groups >= 1, "groups of at least 1")
        check(self, is_int8(self.zero_point), "a zero point in -128..127")
        check(self, is_int8(self.weight_zero_point), "a weight zero point in -128..127")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when image, weights and bias do not fit, or nothing is left."""
        x, weights, _ = require_inputs(self, inputs, 3)
        height, width = self._size(x.shape, _kernel(self, self.groups, inputs))
        require(self, min(height, width) >= 1, x, "at least one row and column of result")
        return (TensorType((1, height, width, weights.shape[0]), DType.INT32),)

    def _size(self, shape: tuple[int, ...], kernel: Pair) -> Pair:
        height, width = (
            (size - 1) * stride + taps - before - after + added
            for size, stride, taps, before, after, added in zip(
                shape[1:3],
                self.strides,
                kernel,
                self.pads[:2],
                self.pads[2:],
                self.added,
                strict=True,
            )
        )
        return height, width

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """A convolution by the turned kernel of ``x`` with its rows and columns apart."""
        x, weights, bias = inputs
        _, height, width, channels = x.shape
        (down, across), (kernel_h, kernel_w) = self.strides, weights.shape[1:3]
        rows, columns = self._size(x.shape, (kernel_h, kernel_w))
        shape = (1, (height - 1) * down + 1, (width - 1) * across + 1, channels)
        apart = np.full(shape, self.zero_point, x.dtype)
        apart[:, ::down, ::across] = x
        down, across = self.added
        pads = (kernel_h - 1, kernel_w - 1, kernel_h - 1 + down, kernel_w - 1 + across)
        plain = Conv2d((1, 1), pads, self.groups, self.zero_point, self.weight_zero_point)
        (whole,) = plain.evaluate((apart, weights[:, ::-1, ::-1], bias))
        top, left = self.pads[:2]
        return (whole[:, top : top + rows, left : left + columns],)


@frozen
class Dense(Opaque):
    """``(x - zero_point) @ (w - weight_zero_point).T + bias``.

    x: int8[N, K], w: int8[O, K], bias: int32[O] to int32[N, O].
    """

    zero_point: int
    weight_zero_point: int = 0

    def __post_init__(self) -> None:
        check(self, is_int8(self.zero_point), "a zero point in -128..127")
        check(self, is_int8(self.weight_zero_point), "a weight zero point in -128..127")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when rows, weights and bias do not fit."""
        x, weights, bias = require_inputs(self, inputs, 3)
        require(self, x.dtype == DType.INT8 and bool(x.shape), x, "int8[..., K]")
        fits = weights.dtype == DType.INT8 and len(weights.shape) == 2
        require(self, fits, weights, "int8[O, K]")
        outputs, size = weights.shape
        require(self, size == x.shape[-1], weights, f"K = {x.shape[-1]}")
        require_exactly(self, bias, TensorType((outputs,), DType.INT32))
        return (TensorType((*x.shape[:-1], outputs), DType.INT32),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Sums in float64, which holds every int32 exactly."""
        x, weights, bias = inputs
        shifted = x.astype(np.float64) - self.zero_point
        factors = weights.astype(np.float64) - self.weight_zero_point
        return ((shifted @ factors.T + bias).astype(np.int32),)


@frozen
class RowProducts(Opaque):
    """Each row of ``x`` with each row of ``y``: ``(x - x_zero_point) @ (y - y_zero_point).T``.

    x: int8[..., M, K], y: int8[..., N, K] to int32[..., M, N]; what is before rows is the same, or
    1 in ``y``, whose rows are then those of all.
    """

    x_zero_point: int
    y_zero_point: int

    def __post_init__(self) -> None:
        check(self, is_int8(self.x_zero_point), "a zero point in -128..127")
        check(self, is_int8(self.y_zero_point), "a zero point in -128..127")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when the rows do not fit each other, or int32 could overflow."""
        x, y = require_inputs(self, inputs, 2)
        require(self, x.dtype == DType.INT8 and x.rank >= 2, x, "int8[..., M, K]")
        *outer, rows, size = x.shape
        same = y.shape[:-2] == x.shape[:-2] or set(y.shape[:-2]) == {1}
        fits = y.dtype == DType.INT8 and y.rank == x.rank and same
        shape = ", ".join(map(str, (*outer, "N", size)))
        require(self, fits and y.shape[-1] == size, y, f"int8[{shape}]")
        require(self, size <= MOST_TERMS, x, f"K of at most {MOST_TERMS}")
        return (TensorType((*outer, rows, y.shape[-2]), DType.INT32),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Sums in float64, which holds every int32 exactly."""
        x, y = (each.astype(np.float64) for each in inputs)
        turned = np.swapaxes(y - self.y_zero_point, -1, -2)
        return (((x - self.x_zero_point) @ turned).astype(np.int32),)


def _kernel(operator: object, groups: int, inputs: tuple[TensorType, ...]) -> Pair:
    """Height and width of the weights, whose type must fit."""
    x, weights, bias = inputs
    require_image(operator, (x,))
    fits = weights.dtype == DType.INT8 and len(weights.shape) == 4
    require(operator, fits, weights, "int8[O, KH, KW, C / groups]")
    out_channels, kernel_height, kernel_width, per_group = weights.shape
    channels = x.shape[3]
    require(operator, per_group * groups == channels, weights, f"C = {channels}")
    equal = out_channels % groups == 0
    require(operator, equal, weights, f"as many outputs for each of {groups} groups")
    require_exactly(operator, bias, TensorType((out_channels,), DType.INT32))
    return kernel_height, kernel_width
