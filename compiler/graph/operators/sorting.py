"""Sorting, and the positions of what holds."""

from collections.abc import Sequence

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..types import TensorType
from .protocol import Array, Opaque, require, require_inputs

__all__ = ["Positions", "Sort"]


@frozen
class Sort(Opaque):
    """The first ``count`` elements in order along the last dimension, and their positions, int64.

    descending: the largest first.  Of equal elements the one that comes first is first.  The order
    of NaN is left open.
    """

    count: int
    descending: bool = False

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Values and positions."""
        (x,) = require_inputs(self, inputs, 1)
        require(self, x.rank > 0 and self.count <= x.shape[-1], x, f"{self.count} elements a row")
        shape = (*x.shape[:-1], self.count)
        return TensorType(shape, x.dtype), TensorType(shape, DType.INT64)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's stable ``argsort``."""
        (x,) = inputs
        if self.descending:
            last = x.shape[-1] - 1
            order = last - np.flip(np.argsort(np.flip(x, -1), axis=-1, kind="stable"), -1)
        else:
            order = np.argsort(x, axis=-1, kind="stable")
        order = np.ascontiguousarray(order[..., : self.count]).astype(np.int64)
        return np.take_along_axis(x, order, axis=-1), order


@frozen
class Positions(Opaque):
    """Where ``x``, bool[N], holds: the first ``count`` positions, int64, padded with 0."""

    count: int

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """int64[count]."""
        (x,) = require_inputs(self, inputs, 1)
        require(self, x.rank == 1 and x.dtype == DType.BOOL, x, "bool[N]")
        return (TensorType((self.count,), DType.INT64),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """NumPy's ``flatnonzero``."""
        found = np.flatnonzero(inputs[0])[: self.count]
        return (np.pad(found, (0, self.count - len(found))).astype(np.int64),)
