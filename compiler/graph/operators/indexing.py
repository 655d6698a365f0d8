"""Operators that read and write where integer tensors say."""

from collections.abc import Sequence
from enum import StrEnum
from math import prod
from typing import Any

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..types import TensorType
from .protocol import Array, Movement, Opaque, require, require_inputs

__all__ = [
    "Gather",
    "GatherElements",
    "GatherNd",
    "ScatterElements",
    "ScatterFunction",
    "ScatterNd",
]


@frozen
class Gather(Movement):
    """``x[..., indices[...], ...]``: the dimensions of ``indices`` in place of ``axis``.

    indices: int32 or int64.  A negative one counts from the end; one beyond the ends is taken as
    the nearest that is not.
    """

    axis: int

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError for a missing dimension or indices of another type."""
        x, indices = require_inputs(self, inputs, 2)
        _require_indices(self, x, indices, self.axis)
        return (
            TensorType((*x.shape[: self.axis], *indices.shape, *x.shape[self.axis + 1 :]), x.dtype),
        )

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``take``."""
        x, indices = inputs
        return (np.take(x, _inside(indices, x.shape[self.axis]), axis=self.axis),)


@frozen
class GatherElements(Movement):
    """``result[i, j, k] = x[i, indices[i, j, k], k]`` for ``axis`` 1; indices as in Gather.

    Other dimensions of ``indices`` are at most those of ``x``.
    """

    axis: int

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The shape of the indices."""
        x, indices = require_inputs(self, inputs, 2)
        _require_indices(self, x, indices, self.axis)
        _require_smaller(self, x, indices, self.axis)
        return (TensorType(indices.shape, x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``take_along_axis``."""
        x, indices = inputs
        return (x[_elements(indices, x.shape, self.axis)],)


class ScatterFunction(StrEnum):
    """Effect of an update on the element that is there."""

    REPLACE = "replace"
    ADD = "add"
    MULTIPLY = "multiply"
    MIN = "min"
    MAX = "max"


@frozen
class ScatterElements(Opaque):
    """``x`` after ``x[i, indices[i, j, k], k] = updates[i, j, k]`` for ``axis`` 1.

    indices as in Gather; updates happen in row-major order.
    """

    axis: int
    function: ScatterFunction

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", ScatterFunction(self.function))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The type of ``x``."""
        x, indices, updates = require_inputs(self, inputs, 3)
        _require_indices(self, x, indices, self.axis)
        _require_smaller(self, x, indices, self.axis)
        fits = updates == TensorType(indices.shape, x.dtype)
        require(self, fits, updates, f"{x.dtype}{list(indices.shape)}")
        return (x,)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's unbuffered ``ufunc.at``."""
        x, indices, updates = inputs
        result = x.copy()
        _combine(self.function, result, _elements(indices, x.shape, self.axis), updates)
        return (result,)


@frozen
class GatherNd(Movement):
    """``x[b, indices[b, ..., :]]``, where ``b`` runs over ``batch`` leading dimensions of both."""

    batch: int = 0

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The indices' dimensions but the last, then what an index leaves of ``x``."""
        x, indices = require_inputs(self, inputs, 2)
        require(self, indices.dtype == DType.INT64, indices, "indices of int64")
        require(self, self.batch >= 0, f"{self.batch} batch dimensions", "0 or more")
        fits = indices.rank > self.batch and self.batch + indices.shape[-1] <= x.rank
        require(self, fits, f"{x} and {indices}", "as many dimensions as an index is long")
        fits = x.shape[: self.batch] == indices.shape[: self.batch]
        require(self, fits, f"{x} and {indices}", f"{self.batch} leading dimensions in common")
        rest = x.shape[self.batch + indices.shape[-1] :]
        return (TensorType((*indices.shape[:-1], *rest), x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By index arrays."""
        x, indices = inputs
        width = indices.shape[-1]
        batches = np.indices(indices.shape[:-1])[: self.batch]
        sizes = x.shape[self.batch : self.batch + width]
        own = [_inside(indices[..., n], sizes[n]) for n in range(width)]
        shape = self.result((_type(x), _type(indices)))[0].shape
        return (np.ascontiguousarray(x[(*batches, *own)]).reshape(shape),)


@frozen
class ScatterNd(Opaque):
    """A copy of ``x`` in which each update is combined with what ``GatherNd`` reads.

    x: T[...], indices: int64[..., K], updates: T of the shape ``GatherNd`` gives.
    """

    function: ScatterFunction = ScatterFunction.REPLACE

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", ScatterFunction(self.function))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The type of ``x``."""
        x, indices, updates = require_inputs(self, inputs, 3)
        (gathered,) = GatherNd().result((x, indices))
        require(self, updates == gathered, updates, f"updates {gathered}")
        return (x,)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By index arrays."""
        x, indices, updates = inputs
        width = indices.shape[-1]
        result = x.copy()
        own = [_inside(indices[..., n], x.shape[n]) for n in range(width)]
        if not own:
            for each in updates.reshape(prod(indices.shape[:-1]), *x.shape):
                _combine(self.function, result, (Ellipsis,), each)
        else:
            _combine(self.function, result, tuple(own), updates)
        return (result,)


def _type(x: Array) -> TensorType:
    return TensorType(x.shape, str(x.dtype))


def _combine(function: ScatterFunction, result: Array, places: Any, updates: Array) -> None:
    functions: dict[ScatterFunction, Any] = {
        ScatterFunction.ADD: np.add,
        ScatterFunction.MULTIPLY: np.multiply,
        ScatterFunction.MIN: np.minimum,
        ScatterFunction.MAX: np.maximum,
    }
    if function == ScatterFunction.REPLACE:
        result[places] = updates
    else:
        functions[function].at(result, places, updates)


def _require_indices(operator: object, x: TensorType, indices: TensorType, axis: int) -> None:
    require(operator, 0 <= axis < x.rank, x, f"dimension {axis}")
    integer = indices.dtype in (DType.INT32, DType.INT64)
    require(operator, integer, indices, "indices of int32 or int64")
    require(operator, x.shape[axis] > 0 or not indices.elements, x, "elements to index")


def _require_smaller(operator: object, x: TensorType, indices: TensorType, axis: int) -> None:
    fits = x.rank == indices.rank and all(
        place == axis or own <= size
        for place, (own, size) in enumerate(zip(indices.shape, x.shape, strict=True))
    )
    require(operator, fits, indices, f"indices within {list(x.shape)} except in dimension {axis}")


def _inside(indices: Array, size: int) -> Array:
    return np.clip(np.where(indices < 0, indices + size, indices), 0, max(size - 1, 0))


def _elements(indices: Array, shape: tuple[int, ...], axis: int) -> tuple[Array, ...]:
    places: list[Array] = list(np.indices(indices.shape, sparse=True))
    places[axis] = _inside(indices, shape[axis])
    return tuple(places)
