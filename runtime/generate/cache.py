"""Caches of keys and values: what a host keeps between runs of a model, and how a run changes it.

Models say in three ways what a run adds to a cache of N positions (exporters differ):

- ``ROW``: the new position alone, ``[..., 1, ...]`` or without that axis; it is written where the
  cache stands;
- ``LAST``: the cache with the new position behind it, ``[..., N + 1, ...]``; its last row is
  written where the cache stands;
- ``WHOLE``: the cache after the run, of the same shape; it takes the place of the one before.
  Where that axis is open, it starts empty and grows.
"""

from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ..errors import ModuleError
from ..tensors import TensorSignature

__all__ = ["Cache", "Update", "relate"]


class Update(Enum):
    """How an output becomes part of a cache."""

    ROW = "row"
    LAST = "last"
    WHOLE = "whole"


@frozen
class Cache:
    """An input that keeps results of earlier runs, and the output that adds to it.

    axis: of positions, in ``past``.  size: positions, None where the axis is open.
    """

    past: TensorSignature
    new: TensorSignature
    axis: int
    update: Update

    @property
    def size(self) -> int | None:
        """Positions that it holds; None for any number."""
        size = self.past.shape[self.axis]
        return None if size < 0 else size

    @property
    def row(self) -> tuple[int, ...]:
        """The shape of what a run adds: of ``new``, but one position where that has them all."""
        if self.update is not Update.LAST:
            return self.new.shape
        return (*self.new.shape[: self.axis], 1, *self.new.shape[self.axis + 1 :])

    def empty(self) -> NDArray[Any]:
        """The cache before the first run: zeros, or no positions where the axis is open."""
        return np.zeros([max(size, 0) for size in self.past.shape], self.past.dtype)

    def after(self, past: NDArray[Any], new: NDArray[Any], position: int) -> NDArray[Any]:
        """The cache after a run at ``position`` with result ``new``; ``past`` may be changed."""
        if self.update is Update.WHOLE:
            return new
        rows = np.moveaxis(past, self.axis, 0)
        if new.ndim == past.ndim:
            new = np.moveaxis(new, self.axis, 0)[-1]
        rows[position] = new
        return past


def relate(past: TensorSignature, new: TensorSignature, axis: int | None = None) -> Cache:
    """The cache of an input and an output, by their shapes.

    axis: of positions; None to find it.  Where no shape tells (``WHOLE``), it is the last but one.
    Raises ModuleError where the shapes do not fit, or several axes could be it.
    """
    found = _found(past, new)
    if axis is not None:
        found = [each for each in found if each.axis == axis]
    elif len(found) > 1 and found[0].update is Update.WHOLE:
        chosen = [i for i, size in enumerate(past.shape) if size < 0] or [len(past.shape) - 2]
        found = [each for each in found if each.axis in chosen]
    if past.dtype == new.dtype and len(found) == 1:
        return found[0]
    axes = ", ".join(str(each.axis) for each in found)
    problem = f"axes {axes} could be that of positions" if found else "the shapes do not fit"
    raise ModuleError(
        f"input {past} and output {new}: {problem}; required one element type, and an output of "
        "the same shape, with one position more, or with one position, its axis kept or left out; "
        f"name the axis: --cache {past.name}={new.name}:AXIS"
    )


def _found(past: TensorSignature, new: TensorSignature) -> list[Cache]:
    """A cache for each axis that could be the one of positions."""
    before, after = past.shape, new.shape
    found = []
    for axis, size in enumerate(before):
        beside = (*before[:axis], *before[axis + 1 :])
        if after == beside:
            found.append(Cache(past, new, axis, Update.ROW))
        if len(after) != len(before) or (*after[:axis], *after[axis + 1 :]) != beside:
            continue
        if after[axis] == size:
            found.append(Cache(past, new, axis, Update.WHOLE))
        elif after[axis] == size + 1:
            found.append(Cache(past, new, axis, Update.LAST))
        elif after[axis] == 1:
            found.append(Cache(past, new, axis, Update.ROW))
    return found
