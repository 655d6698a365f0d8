"""Known contents of a board's memory, so that only differences are sent."""

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.link import GRAIN

__all__ = ["Contents"]

Bytes = NDArray[np.uint8]
Ranges = list[tuple[int, int]]

JOINED = 64
"""Ranges this near are sent as one: a request costs more than a few bytes."""


class Contents:
    """The bytes that were written to a board, and which of them still hold."""

    def __init__(self) -> None:
        self._bytes: Bytes = np.zeros(0, np.uint8)
        self._known = np.zeros(0, bool)

    def forget(self) -> None:
        """Nothing is known any more."""
        self._known[:] = False

    def forget_range(self, start: int, end: int) -> None:
        """Bytes ``start`` to ``end`` are unknown."""
        self._known[start:end] = False

    def missing(self, wanted: Bytes) -> Ranges:
        """Ranges (start, end) to be sent so that memory from address 0 is ``wanted``.

        Their bounds are multiples of ``GRAIN``; so is the size of ``wanted``.
        """
        self._grow(wanted.size)
        differs = (self._bytes[: wanted.size] != wanted) | ~self._known[: wanted.size]
        grains = np.flatnonzero(differs.reshape(-1, GRAIN).any(axis=1))
        if not grains.size:
            return []
        breaks = np.flatnonzero(np.diff(grains) > JOINED // GRAIN)
        firsts = np.concatenate([grains[:1], grains[breaks + 1]])
        lasts = np.concatenate([grains[breaks], grains[-1:]])
        return [
            (int(first) * GRAIN, (int(last) + 1) * GRAIN)
            for first, last in zip(firsts, lasts, strict=True)
        ]

    def sent(self, start: int, content: Bytes) -> None:
        """The board acknowledged ``content`` at ``start``."""
        self._grow(start + content.size)
        self._bytes[start : start + content.size] = content
        self._known[start : start + content.size] = True

    def _grow(self, size: int) -> None:
        more = size - self._bytes.size
        if more > 0:
            self._bytes = np.concatenate([self._bytes, np.zeros(more, np.uint8)])
            self._known = np.concatenate([self._known, np.zeros(more, bool)])
