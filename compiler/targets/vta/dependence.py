"""Operations that must come before others, whatever their units.

Operation ``i`` depends on an earlier ``j`` when one of them writes a place that the other reads or
writes.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Memory, Unit

from .regions import Space, touched

__all__ = ["dependences", "drained", "permuted", "serial"]

NOWHERE = -1
"""The first and last word of a read with no words left."""
KEPT = 1 << 13
"""Instructions whose touches are remembered: nine in ten come again in the drafts of a search."""


@frozen
class _Touch:
    """Places of one space that an instruction reads or writes, from ``first`` to ``last``.

    bits: one for each of them, from the first on.  places: all, ascending; as a slice, if they
    leave none out.
    """

    space: Space
    writes: bool
    first: int
    last: int
    bits: int
    places: slice | NDArray[np.int64]


class _Scratchpad:
    """The last writer of each word, and who has read it since.

    For each read: the operation, its first word, and from that word on a bit for each word that has
    not been written since.
    """

    def __init__(self, depth: int) -> None:
        self._writer: NDArray[np.int64] = np.full(depth, -1)
        self._reads: list[tuple[int, int, int]] = []
        self._limits: NDArray[np.int64] = np.zeros((2, 64), np.int64)
        self._gone = 0
        """Reads with no words left."""

    def read(self, index: int, touch: _Touch) -> set[int]:
        """Note a read; return the operations whose results it reads."""
        count = len(self._reads)
        if count == self._limits.shape[1]:
            self._limits = np.concatenate([self._limits, np.zeros_like(self._limits)], axis=1)
        self._limits[:, count] = touch.first, touch.last
        self._reads.append((index, touch.first, touch.bits))
        return _values(self._writer[touch.places])

    def write(self, index: int, touch: _Touch) -> set[int]:
        """Note a write; return the operations that wrote or read there before."""
        found = _values(self._writer[touch.places])
        low, high = self._limits[:, : len(self._reads)]
        begin, bits = touch.first, touch.bits
        for position in np.flatnonzero((low <= touch.last) & (high >= begin)).tolist():
            reader, first, unwritten = self._reads[position]
            late = begin - first
            left = unwritten & ~(bits << late if late > 0 else bits >> -late)
            if left != unwritten:
                found.add(reader)
                self._reads[position] = reader, first, left
                if not left:
                    self._limits[:, position] = NOWHERE
                    self._gone += 1
        if 2 * self._gone > len(self._reads):
            kept = [n for n, (_, _, left) in enumerate(self._reads) if left]
            self._limits[:, : len(kept)] = self._limits[:, kept]
            self._reads, self._gone = [self._reads[n] for n in kept], 0
        self._writer[touch.places] = index
        return found


class _Dram:
    """Every access to what is written at all."""

    def __init__(self) -> None:
        self._reads = _Accesses()
        self._writes = _Accesses()

    def access(self, index: int, touch: _Touch) -> set[int]:
        """Note an access; return the earlier ones it conflicts with."""
        found = self._writes.meeting(touch)
        if touch.writes:
            found |= self._reads.meeting(touch)
        (self._writes if touch.writes else self._reads).add(index, touch)
        return found


class _Accesses:
    """Accesses: the first and last place of each, which tell most of them apart, and a bit for each
    place from the first on.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[int, int, int]] = []
        self._limits: NDArray[np.int64] = np.zeros((2, 64), np.int64)

    def add(self, index: int, touch: _Touch) -> None:
        """Note one."""
        count = len(self._entries)
        if count == self._limits.shape[1]:
            self._limits = np.concatenate([self._limits, np.zeros_like(self._limits)], axis=1)
        self._limits[:, count] = touch.first, touch.last
        self._entries.append((index, touch.first, touch.bits))

    def meeting(self, touch: _Touch) -> set[int]:
        """Operations that touch one of its places."""
        low, high = self._limits[:, : len(self._entries)]
        begin, bits = touch.first, touch.bits
        found = set()
        for position in np.flatnonzero((low <= touch.last) & (high >= begin)).tolist():
            index, first, other = self._entries[position]
            late = begin - first
            if bits & other >> late if late > 0 else bits >> -late & other:
                found.add(index)
        return found


@lru_cache(maxsize=8)
def _touches_on(config: HardwareConfig) -> Callable[[Instruction], tuple[_Touch, ...]]:
    """A function that says what an instruction touches, reads first."""

    @lru_cache(maxsize=KEPT)
    def touches(instruction: Instruction) -> tuple[_Touch, ...]:
        return tuple(
            _Touch(
                each.space,
                each.writes,
                int(each.places[0]),
                int(each.places[-1]),
                _bits(each.places),
                _run(each.places),
            )
            for each in touched(instruction, config)
        )

    return touches


def _bits(places: NDArray[np.int64]) -> int:
    """One for each of ``places``, which ascend, from the first on."""
    count, size = len(places), int(places[-1] - places[0]) + 1
    if size == count:
        return (1 << count) - 1
    flags = np.zeros(size, np.uint8)
    flags[places - places[0]] = 1
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def _run(places: NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """``places``, which ascend; as a slice, if they leave none out."""
    first, last = int(places[0]), int(places[-1])
    return slice(first, last + 1) if last - first + 1 == len(places) else places


def _values(array: NDArray[np.int64]) -> set[int]:
    """The distinct values of an array of long runs."""
    starts = np.flatnonzero(array[1:] != array[:-1])
    return {int(array[0]), *array[starts + 1].tolist()}


def dependences(
    program: Sequence[Instruction],
    config: HardwareConfig,
    tiles: Sequence[int | None] | None = None,
) -> list[frozenset[int]]:
    """For each instruction, the earlier ones it conflicts with.

    Some may be missing that others of them depend on.
    tiles: where it is given, instructions of different tiles are to have different words of ACC,
    whatever their addresses.
    """
    scratchpads: dict[tuple[Memory, int | None], _Scratchpad] = {}
    dram, touches = _Dram(), _touches_on(config)
    result = []
    for index, instruction in enumerate(program):
        found: set[int] = set()
        for touch in touches(instruction):
            if touch.space is None:
                found |= dram.access(index, touch)
                continue
            tile = tiles[index] if tiles and touch.space is Memory.ACC else None
            key = touch.space, tile
            if key not in scratchpads:
                scratchpads[key] = _Scratchpad(config.depth(touch.space))
            access = scratchpads[key].write if touch.writes else scratchpads[key].read
            found |= access(index, touch)
        result.append(frozenset(found - {index, -1}))
    return result


def permuted(before: Sequence[frozenset[int]], order: Sequence[int]) -> list[frozenset[int]]:
    """The dependences of a program in another order: ``order`` names its instructions in turn."""
    place = {index: number for number, index in enumerate(order)}
    return [frozenset(place[earlier] for earlier in before[index]) for index in order]


def serial(before: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """``before``, and each instruction after the one before it."""
    return [each | {index - 1} if index else each for index, each in enumerate(before)]


def drained(
    before: Sequence[frozenset[int]], units: Sequence[Unit], layers: Sequence[int]
) -> list[frozenset[int]]:
    """``before``, and each layer after all of the layers before it; these come one by one."""
    found = []
    latest: dict[Unit, int] = {}
    past: frozenset[int] = frozenset()
    for index, each in enumerate(before):
        if index and layers[index] != layers[index - 1]:
            past = frozenset(latest.values())
        found.append(each | past)
        latest[units[index]] = index
    return found
