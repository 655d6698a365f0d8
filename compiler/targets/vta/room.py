"""Words of ACT that layers may use beside the activations that are on chip."""

from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from typing import Protocol

from .items import Item

__all__ = ["Beside", "Room", "Rooms"]


class Room(Protocol):
    """Words of ACT that are free while some layers run."""

    def of(self, first: int, last: int) -> int:
        """Free words while layers ``first`` to ``last`` run."""

    def each(self, first: int, end: int) -> tuple[int, ...]:
        """``of`` layers ``first`` to ``last``, for each ``last`` before ``end``."""


class Rooms:
    """The room beside some activations; remembers what it was asked for."""

    def __init__(self, items: Iterable[Item], layers: int, depth: int) -> None:
        """``items``: on chip.  layers: how many.  depth: words of ACT."""
        begun, ended = ([0] * (layers + 1) for _ in range(2))
        for item in items:
            begun[max(item.first, 0)] += item.words
            ended[item.last + 1] += item.words
        self._depth = depth
        self._begun, self._ended = list(accumulate(begun)), list(accumulate(ended))
        self._known: dict[tuple[int, int], tuple[int, ...]] = {}

    def of(self, first: int, last: int) -> int:
        """As ``Room``."""
        return self._depth - (self._begun[last] - self._ended[first])

    def each(self, first: int, end: int) -> tuple[int, ...]:
        """As ``Room``."""
        found = self._known.get((first, end))
        if found is None:
            found = tuple(self.of(first, last) for last in range(first, end))
            self._known[first, end] = found
        return found


class Beside:
    """The room of another choice, with more or fewer activations on chip."""

    def __init__(self, base: Room, moved: Sequence[Item], gone: Collection[str]) -> None:
        """moved: activations that come on chip or go.  gone: names of those that are not on chip
        then.
        """
        self._base = base
        self._changes = [
            (item.first, item.last, item.words if item.activation.name in gone else -item.words)
            for item in moved
        ]

    def of(self, first: int, last: int) -> int:
        """As ``Room``."""
        left = self._base.of(first, last)
        for begin, end, words in self._changes:
            if begin <= last and end >= first:
                left += words
        return left

    def each(self, first: int, end: int) -> tuple[int, ...]:
        """As ``Room``."""
        if any(begin < end and last >= first for begin, last, _ in self._changes):
            return tuple(self.of(first, last) for last in range(first, end))
        return self._base.each(first, end)
