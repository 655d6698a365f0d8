"""Weighted sums of elements of one dimension, for resizing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .formulas import Term

__all__ = ["along"]


def along(
    x: Term, axis: int, indices: NDArray[np.int64], weights: NDArray[np.floating[Any]]
) -> Term:
    """``sum(x[..., indices[k], ...] * weights[k])`` over the taps k, along one axis.

    indices, weights: [taps, size]; ``size`` is the axis's in the result.
    """
    shape = [1] * x.rank
    shape[axis] = indices.shape[1]
    total: Term | None = None
    for index, weight in zip(indices, weights, strict=True):
        piece = x.take(index, axis)
        if not np.all(weight == 1):
            piece = piece * weight.reshape(shape)
        total = piece if total is None else total + piece
    assert total is not None
    return total
