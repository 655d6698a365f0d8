"""Reductions over sliding windows."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import GraphError
from ..types import TensorType
from .contractions import output_size
from .protocol import Array, Fusion, require, require_inputs

__all__ = ["WindowArgMax", "WindowFunction", "WindowReduce", "lowest"]


class WindowFunction(StrEnum):
    """Function that combines the elements of a window."""

    ADD = "add"
    MAX = "max"


@frozen
class _Windows:
    """Windows over ``axes``: sizes, strides, dilations, pads; positions outside do not take part.

    A window of only such positions gives 0 as a sum and the lowest value as a maximum.
    """

    axes: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]

    fusion: ClassVar[Fusion] = Fusion.CONTRACTION

    def __post_init__(self) -> None:
        lengths = {len(each) for each in (self.kernel, self.strides, self.dilations, self.pads)}
        if lengths != {len(self.axes)}:
            raise GraphError(f"{self}: required attributes of one length")
        if min((1, *self.kernel, *self.strides, *self.dilations)) < 1:
            raise GraphError(f"{self}: required kernel, strides and dilations of at least 1")
        if len({*self.axes}) != len(self.axes):
            raise GraphError(f"{self}: required each axis once")

    def shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Shape of the result.

        Raises GraphError when no window fits, or an axis is missing.
        """
        fits = all(0 <= axis < len(shape) for axis in self.axes)
        require(self, fits, f"{len(shape)} dimensions", f"dimensions {self.axes}")
        sizes = list(shape)
        for axis, kernel, stride, dilation, pads in self.each():
            sizes[axis] = output_size(shape[axis], kernel, stride, dilation, pads)
        return tuple(sizes)

    def each(self) -> Sequence[tuple[int, int, int, int, tuple[int, int]]]:
        """Axis, kernel, stride, dilation and pads of each axis."""
        return list(
            zip(self.axes, self.kernel, self.strides, self.dilations, self.pads, strict=True)
        )

    def windows(self, x: Array, fill: object) -> Array:
        """Every window, its elements in the last dimensions."""
        widths = [(0, 0)] * x.ndim
        for axis, pads in zip(self.axes, self.pads, strict=True):
            widths[axis] = pads
        padded = np.pad(x, widths, constant_values=fill)  # type: ignore[call-overload]
        extents = tuple((k - 1) * d + 1 for _, k, _, d, _ in self.each())
        views = np.lib.stride_tricks.sliding_window_view(padded, extents, axis=self.axes)
        steps = [slice(None)] * x.ndim
        for axis, stride in zip(self.axes, self.strides, strict=True):
            steps[axis] = slice(None, None, stride)
        return np.asarray(views[(*steps, *(slice(None, None, step) for step in self.dilations))])


@frozen
class WindowReduce(_Windows):
    """Each element is ``function`` of a window; the dtype stays; integer sums wrap."""

    function: WindowFunction

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", WindowFunction(self.function))
        _Windows.__post_init__(self)

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """One element a window."""
        (x,) = require_inputs(self, inputs, 1)
        return (TensorType(self.shape(x.shape), x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Over views of all windows."""
        (x,) = inputs
        axes = tuple(range(x.ndim, x.ndim + len(self.axes)))
        if self.function == WindowFunction.MAX:
            return (self.windows(x, lowest(x.dtype)).max(axis=axes),)
        return (self.windows(x, 0).sum(axis=axes, dtype=x.dtype),)


@frozen
class WindowArgMax(_Windows):
    """Where the first maximum of each window is: int64, row-major over the sizes of ``axes``.

    NaN is larger than all numbers, as the maximum is NaN then.
    """

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """One index a window."""
        (x,) = require_inputs(self, inputs, 1)
        return (TensorType(self.shape(x.shape), DType.INT64),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Over views of all windows, and of the indices in them."""
        (x,) = inputs
        sizes = tuple(x.shape[axis] for axis in self.axes)
        grid = np.arange(np.prod(sizes), dtype=np.int64).reshape(sizes)
        aligned = np.ones(x.ndim, int)
        aligned[list(self.axes)] = sizes
        places = np.broadcast_to(grid.reshape(aligned), x.shape)
        values, indices = self.windows(x, lowest(x.dtype)), self.windows(places, -1)
        flat = (*values.shape[: x.ndim], -1)
        candidates = np.where(indices.reshape(flat) < 0, -1, 0)
        values = values.reshape(flat)
        best = values.max(axis=-1, keepdims=True)
        hits = ((values == best) | (values != values)) & (candidates == 0)
        first = hits.argmax(axis=-1)[..., None]
        return (np.take_along_axis(indices.reshape(flat), first, axis=-1)[..., 0],)


def lowest(dtype: np.dtype[Any]) -> int | float | bool:
    """The value below all others, with which a maximum begins."""
    if dtype == np.bool_:
        return False
    if np.issubdtype(dtype, np.integer):
        return int(np.iinfo(dtype).min)
    return float("-inf")
