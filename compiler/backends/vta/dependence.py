"""Which operations must come before which, whatever their units.

Operation ``i`` depends on an earlier ``j`` when one of them writes a place that the other reads or
writes.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Memory

from .regions import Touched, touched

__all__ = ["dependences"]


class _Scratchpad:
    """The last writer of each word, and who has read it since."""

    def __init__(self, depth: int) -> None:
        self._writer: NDArray[np.int64] = np.full(depth, -1)
        self._readers: list[tuple[int, int]] = []
        """Operation, and the words it read that nobody has written since, one bit each."""

    def read(self, index: int, places: NDArray[np.int64]) -> set[int]:
        """Note a read; return the operations whose results it reads."""
        self._readers.append((index, self._bits(places)))
        return set(np.unique(self._writer[places]).tolist())

    def write(self, index: int, places: NDArray[np.int64]) -> set[int]:
        """Note a write; return the operations that wrote or read there before."""
        found = set(np.unique(self._writer[places]).tolist())
        written = self._bits(places)
        kept = []
        for reader, bits in self._readers:
            if bits & written:
                found.add(reader)
                bits &= ~written
            if bits:
                kept.append((reader, bits))
        self._readers = kept
        self._writer[places] = index
        return found

    def _bits(self, places: NDArray[np.int64]) -> int:
        flags = np.zeros(len(self._writer), np.uint8)
        flags[places] = 1
        return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


class _Dram:
    """Every access so far; few of them are writes."""

    def __init__(self) -> None:
        self._accesses: list[tuple[int, Touched]] = []

    def access(self, index: int, touch: Touched) -> set[int]:
        """Note an access; return the earlier ones it conflicts with."""
        found = {
            other
            for other, earlier in self._accesses
            if (touch.writes or earlier.writes) and touch.meets(earlier)
        }
        self._accesses.append((index, touch))
        return found


def dependences(program: Sequence[Instruction], config: HardwareConfig) -> list[frozenset[int]]:
    """For each instruction, the earlier ones it conflicts with.

    Some may be missing that others of them depend on.
    """
    scratchpads = {memory: _Scratchpad(config.depth(memory)) for memory in Memory}
    dram = _Dram()
    result = []
    for index, instruction in enumerate(program):
        found: set[int] = set()
        for touch in touched(instruction, config):
            if touch.space is None:
                found |= dram.access(index, touch)
            elif touch.writes:
                found |= scratchpads[touch.space].write(index, touch.places)
            else:
                found |= scratchpads[touch.space].read(index, touch.places)
        result.append(frozenset(found - {index, -1}))
    return result
