"""Reductions of whole dimensions."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import GraphError
from ..types import TensorType
from .protocol import Array, Fusion, require, require_inputs

__all__ = ["ArgReduce", "Cumulative", "Reduce", "ReduceFunction", "neutral"]


class ReduceFunction(StrEnum):
    """Function that combines elements."""

    SUM = "sum"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    """NaN when a float element is NaN."""


@frozen
class Reduce:
    """``function`` over ``axes``, which stay as dimensions of 1 with ``keep``.

    The dtype stays; integers wrap; the order is not defined.  No elements give the function's
    neutral value: 0, 1, the highest or the lowest value.  Source: NumPy's ``reduce`` methods.
    """

    function: ReduceFunction
    axes: tuple[int, ...]
    keep: bool

    fusion: ClassVar[Fusion] = Fusion.REDUCTION

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", ReduceFunction(self.function))
        object.__setattr__(self, "keep", bool(self.keep))
        if len(set(self.axes)) != len(self.axes):
            raise GraphError(f"{self}: required different axes")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The shape without ``axes``.  Raises GraphError for bool sums and axes out of range."""
        (x,) = require_inputs(self, inputs, 1)
        require(self, all(0 <= axis < x.rank for axis in self.axes), x, f"dimensions {self.axes}")
        ordered = self.function in (ReduceFunction.MIN, ReduceFunction.MAX)
        require(self, ordered or x.dtype != DType.BOOL, x, "numbers")
        shape = tuple(
            1 if axis in self.axes else size
            for axis, size in enumerate(x.shape)
            if self.keep or axis not in self.axes
        )
        return (TensorType(shape, x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's reductions; 16-bit floats are combined in float32, rounded at the end."""
        (x,) = inputs
        narrow = x.dtype.itemsize == 2 and DType(str(x.dtype)).is_float
        wide = x.astype(np.float32) if narrow else x
        function: dict[ReduceFunction, Any] = {
            ReduceFunction.SUM: np.add,
            ReduceFunction.PRODUCT: np.multiply,
            ReduceFunction.MIN: np.minimum,
            ReduceFunction.MAX: np.maximum,
        }
        reduce = function[self.function].reduce
        options = {"axis": self.axes, "keepdims": self.keep, "dtype": wide.dtype}
        with np.errstate(all="ignore"):
            found = reduce(wide, **options, initial=neutral(self.function, wide.dtype))
            return (np.asarray(found).astype(x.dtype),)


def neutral(function: ReduceFunction, dtype: np.dtype[Any]) -> int | float | bool:
    """The value that changes nothing."""
    if function == ReduceFunction.SUM:
        return 0
    if function == ReduceFunction.PRODUCT:
        return 1
    low = function == ReduceFunction.MAX
    if dtype == np.bool_:
        return not low
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        return int(limits.min if low else limits.max)
    return float("-inf" if low else "inf")


@frozen
class ArgReduce:
    """The position along ``axis`` of the largest or smallest element, int64; the axis vanishes.

    last: of equal elements the last, not the first.  NaN is found only where it stands first, as in
    ONNX Runtime: no other is larger or smaller than it, nor it than they.
    """

    function: ReduceFunction
    axis: int
    last: bool = False

    fusion: ClassVar[Fusion] = Fusion.REDUCTION

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", ReduceFunction(self.function))
        if self.function not in (ReduceFunction.MIN, ReduceFunction.MAX):
            raise GraphError(f"{self}: required min or max")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The other dimensions."""
        (x,) = require_inputs(self, inputs, 1)
        fits = 0 <= self.axis < x.rank and x.shape[self.axis] > 0
        require(self, fits, x, f"elements along dimension {self.axis}")
        return (TensorType((*x.shape[: self.axis], *x.shape[self.axis + 1 :]), DType.INT64),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Where the best element that is no NaN stands."""
        (x,) = inputs
        best = np.fmax if self.function is ReduceFunction.MAX else np.fmin
        hits = x == best.reduce(x, axis=self.axis, keepdims=True)
        if self.last:
            found = x.shape[self.axis] - 1 - np.flip(hits, self.axis).argmax(self.axis)
        else:
            found = hits.argmax(self.axis)
        first = x.take(0, self.axis)
        return (np.where(first == first, found, 0).astype(np.int64),)


RUNNING = {
    ReduceFunction.SUM: np.add,
    ReduceFunction.PRODUCT: np.multiply,
    ReduceFunction.MIN: np.minimum,
    ReduceFunction.MAX: np.maximum,
}


@frozen
class Cumulative:
    """Each element combined with all before it along ``axis``.

    exclusive: without itself.  reverse: with all after it instead.
    """

    function: ReduceFunction
    axis: int
    exclusive: bool = False
    reverse: bool = False

    fusion: ClassVar[Fusion] = Fusion.REDUCTION

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", ReduceFunction(self.function))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The same type."""
        (x,) = require_inputs(self, inputs, 1)
        require(self, 0 <= self.axis < x.rank, x, f"dimension {self.axis}")
        return (x,)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``accumulate``."""
        (x,) = inputs
        moved = np.moveaxis(x, self.axis, 0)
        moved = moved[::-1] if self.reverse else moved
        with np.errstate(all="ignore"):
            total = RUNNING[self.function].accumulate(moved, axis=0, dtype=x.dtype)
        if self.exclusive and len(total):
            first = np.full_like(total[:1], np.asarray(neutral(self.function, x.dtype)))
            total = np.concatenate([first, total[:-1]])
        total = total[::-1] if self.reverse else total
        return (np.ascontiguousarray(np.moveaxis(total, 0, self.axis)),)
