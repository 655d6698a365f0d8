"""Operators that read and write where integer tensors say."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import numpy as np

from ...dtypes import DType
from ..types import TensorType
from .protocol import Array, Fusion, require, require_inputs

__all__ = ["Gather", "GatherElements", "ScatterElements", "ScatterFunction"]


@dataclass(frozen=True, slots=True)
class Gather:
    """``x[..., indices[...], ...]``: the dimensions of ``indices`` in the place of ``axis``.

    indices: int32 or int64.  A negative one counts from the end; one beyond the ends is taken as
    the nearest that is not.
    """

    axis: int

    fusion: ClassVar[Fusion] = Fusion.MOVEMENT

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError for a missing dimension or indices of another type."""
        require_inputs(self, inputs, 2)
        x, indices = inputs
        _require_indices(self, x, indices, self.axis)
        return (
            TensorType((*x.shape[: self.axis], *indices.shape, *x.shape[self.axis + 1 :]), x.dtype),
        )

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``take``."""
        x, indices = inputs
        return (np.take(x, _inside(indices, x.shape[self.axis]), axis=self.axis),)


@dataclass(frozen=True, slots=True)
class GatherElements:
    """``result[i, j, k] = x[i, indices[i, j, k], k]`` for ``axis`` 1; indices as in Gather.

    Other dimensions of ``indices`` are at most those of ``x``.
    """

    axis: int

    fusion: ClassVar[Fusion] = Fusion.MOVEMENT

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The shape of the indices."""
        require_inputs(self, inputs, 2)
        x, indices = inputs
        _require_indices(self, x, indices, self.axis)
        _require_smaller(self, x, indices, self.axis)
        return (TensorType(indices.shape, x.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``take_along_axis``."""
        x, indices = inputs
        return (x[_elements(indices, x.shape, self.axis)],)


class ScatterFunction(StrEnum):
    """What an update does to the element that is there."""

    REPLACE = "replace"
    ADD = "add"
    MULTIPLY = "multiply"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class ScatterElements:
    """``x`` after ``x[i, indices[i, j, k], k] = updates[i, j, k]`` for ``axis`` 1.

    indices as in Gather; updates happen in row-major order.
    """

    axis: int
    function: ScatterFunction

    fusion: ClassVar[Fusion] = Fusion.OPAQUE

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", ScatterFunction(self.function))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The type of ``x``."""
        require_inputs(self, inputs, 3)
        x, indices, updates = inputs
        _require_indices(self, x, indices, self.axis)
        _require_smaller(self, x, indices, self.axis)
        fits = updates == TensorType(indices.shape, x.dtype)
        require(self, fits, updates, f"{x.dtype}{list(indices.shape)}")
        return (x,)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's unbuffered ``ufunc.at``."""
        x, indices, updates = inputs
        result = x.copy()
        where = _elements(indices, x.shape, self.axis)
        functions: dict[ScatterFunction, Any] = {
            ScatterFunction.ADD: np.add,
            ScatterFunction.MULTIPLY: np.multiply,
            ScatterFunction.MIN: np.minimum,
            ScatterFunction.MAX: np.maximum,
        }
        if self.function == ScatterFunction.REPLACE:
            result[where] = updates
        else:
            functions[self.function].at(result, where, updates)
        return (result,)


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
    require(operator, fits, indices, f"indices within {list(x.shape)} but for dimension {axis}")


def _inside(indices: Array, size: int) -> Array:
    return np.clip(np.where(indices < 0, indices + size, indices), 0, max(size - 1, 0))


def _elements(indices: Array, shape: tuple[int, ...], axis: int) -> tuple[Array, ...]:
    places: list[Array] = list(np.indices(indices.shape, sparse=True))
    places[axis] = _inside(indices, shape[axis])
    return tuple(places)
