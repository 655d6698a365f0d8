"""Comparison of results with a reference's."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["difference"]

Array = NDArray[Any]
TOLERANCE = 1e-5


def difference(found: Sequence[Array], wanted: Sequence[Array]) -> str:
    """How results differ from those wanted; nothing when they do not.

    Integers are equal.  Floats are within ``TOLERANCE`` of the largest one.
    """
    for ours, theirs in zip(found, wanted, strict=True):
        if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
            return f"{ours.dtype}{list(ours.shape)}, not {theirs.dtype}{list(theirs.shape)}"
        if theirs.dtype.kind == "f":
            error = np.abs(ours - theirs).max(initial=0)
            largest = max(float(np.abs(theirs).max(initial=0)), 1e-9)
            if not error <= TOLERANCE * largest:
                return f"differs by {error / largest:.1e}"
        elif (ours != theirs).any():
            steps = np.abs(ours.astype(np.int64) - theirs.astype(np.int64)).max()
            return f"{(ours != theirs).sum()} of {ours.size} differ, by up to {steps}"
    return ""
