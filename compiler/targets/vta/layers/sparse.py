"""Blocks of channels that each block of a convolution's result comes from.

Where channels are only picked, or are groups, most tiles of weights are 0.  Those that are not are
in a band: result block ``c`` comes from the input blocks ``first + c * step`` and following.  What
is outside is neither loaded nor computed.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["WHOLE", "Band", "find_band"]


class Band(NamedTuple):
    """first: the input block that result block 0 begins with.  step: by how many more the next."""

    first: int
    step: int

    def of(self, block: NDArray[np.int64], part: NDArray[np.int64]) -> NDArray[np.int64]:
        """The input block of place ``part`` in the band of result block ``block``."""
        return block * self.step + part + self.first


WHOLE = Band(0, 0)


def find_band(used: NDArray[np.bool_]) -> tuple[Band, int]:
    """The narrowest band with every used tile, and its blocks, at least one.

    used: bool[result blocks, input blocks].
    """
    outputs, inputs = used.shape
    found = [(inputs, 0, 0)]
    rows, columns = np.nonzero(used)
    for step in (0, 1):
        starts = columns - rows * step
        first = int(starts.min(initial=inputs - 1 - step * (outputs - 1)))
        count = int(starts.max(initial=first)) - first + 1
        if first >= 0 and (outputs - 1) * step + first + count <= inputs:
            found.append((count, step, first))
    count, step, first = min(found)
    return Band(first, step), count
