"""Channels of heads that are side by side, in the order in which they are."""

from itertools import islice

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

__all__ = ["Group", "plain_channels"]


@frozen
class Group:
    """Heads whose keys are side by side: the number of the first, how many; elements of a head in
    their order as channels, in runs of these sizes that each have all heads.

    times: how often the keys are there, so that they fill blocks; no query reads but the first.
    """

    first: int
    heads: int
    order: tuple[int, ...]
    sizes: tuple[int, ...]
    times: int = 1

    @property
    def channels(self) -> list[tuple[int, int]]:
        """Head, counted from the first, and element of each channel."""
        found, left = list[tuple[int, int]](), iter(self.order)
        for size in self.sizes:
            run = list(islice(left, size))
            found += [(head, each) for head in range(self.heads) for each in run] * self.times
        return found

    @property
    def own(self) -> NDArray[np.bool_]:
        """Channels that queries of each head read: bool[heads, channels]."""
        parts = [
            np.eye(self.heads, self.heads * self.times, dtype=bool).repeat(size, 1)
            for size in self.sizes
        ]
        return np.concatenate(parts, 1)


def plain_channels(group: Group) -> list[tuple[int, int]]:
    """Head and element of each channel, head by head."""
    return [(head, place) for head in range(group.heads) for place in range(len(group.order))]
