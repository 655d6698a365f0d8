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
FEW, SHORT = 16, 128
"""Accesses, and words, up to which Python is faster than NumPy."""
KEPT = 1 << 17
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


class _Accesses:
    """Accesses: of each the operation, its first and last place, and a bit for each place from the
    first on that is still of interest.  First and last tell most of them apart.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, int, int]] = []
        self._limits: NDArray[np.int64] = np.zeros((0, 2), np.int64)
        """First and last place of the first entries."""

    def add(self, index: int, touch: _Touch) -> None:
        """Note one."""
        self.entries.append((index, touch.first, touch.last, touch.bits))

    def keep(self, position: int, bits: int) -> None:
        """Leave only these bits of an entry."""
        index, first, last, _ = self.entries[position]
        last = last if bits else NOWHERE
        self.entries[position] = index, first, last, bits
        if position < len(self._limits):
            self._limits[position, 1] = last

    def drop_empty(self) -> None:
        """Forget entries with no bits."""
        self.entries = [entry for entry in self.entries if entry[3]]
        self._limits = self._limits[:0]

    def near(self, touch: _Touch) -> list[int]:
        """Positions of those that a touch may meet."""
        begin, end, entries = touch.first, touch.last, self.entries
        if len(entries) <= FEW:
            spans = enumerate(entries)
            return [n for n, (_, first, last, _) in spans if first <= end and last >= begin]
        known = len(self._limits)
        if known + FEW < len(entries):
            more = [entry[1:3] for entry in entries[known:]]
            self._limits = np.concatenate([self._limits, np.array(more)])
            known = len(entries)
        low, high = self._limits.T
        found: list[int] = np.flatnonzero((low <= end) & (high >= begin)).tolist()
        for n in range(known, len(entries)):
            _, first, last, _ = entries[n]
            if first <= end and last >= begin:
                found.append(n)
        return found


class _Scratchpad:
    """The last writer of each word, and who has read it since: of each read, the words that have
    not been written since.
    """

    def __init__(self, depth: int) -> None:
        self._writer: NDArray[np.int64] = np.full(depth, -1)
        self._reads = _Accesses()
        self._gone = 0
        """Reads with no words left."""

    def read(self, index: int, touch: _Touch) -> set[int]:
        """Note a read; return the operations whose results it reads."""
        self._reads.add(index, touch)
        return _values(self._writer[touch.places])

    def write(self, index: int, touch: _Touch) -> set[int]:
        """Note a write; return the operations that wrote or read there before."""
        found = _values(self._writer[touch.places])
        for position in self._reads.near(touch):
            reader, first, _, unwritten = self._reads.entries[position]
            late = touch.first - first
            left = unwritten & ~(touch.bits << late if late > 0 else touch.bits >> -late)
            if left != unwritten:
                found.add(reader)
                self._reads.keep(position, left)
                self._gone += not left
        if 2 * self._gone > len(self._reads.entries):
            self._reads.drop_empty()
            self._gone = 0
        self._writer[touch.places] = index
        return found


class _Dram:
    """Every access to what is written at all."""

    def __init__(self) -> None:
        self._reads = _Accesses()
        self._writes = _Accesses()

    def access(self, index: int, touch: _Touch) -> set[int]:
        """Note an access; return the earlier ones it conflicts with."""
        found = _meeting(self._writes, touch)
        if touch.writes:
            found |= _meeting(self._reads, touch)
        (self._writes if touch.writes else self._reads).add(index, touch)
        return found


def _meeting(accesses: _Accesses, touch: _Touch) -> set[int]:
    """Operations that touch one of its places."""
    begin, bits, found = touch.first, touch.bits, set()
    for position in accesses.near(touch):
        index, first, _, other = accesses.entries[position]
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
    if len(array) <= SHORT:
        return set(array.tolist())
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
    place = [0] * len(order)
    for number, index in enumerate(order):
        place[index] = number
    return [frozenset(map(place.__getitem__, before[index])) for index in order]


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
