"""What each instruction reads and writes, as arrays of words, for dependence analysis."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import dram_rows, scratchpad_reads, scratchpad_writes
from dovetail.isa.instructions import Instruction, Load, Store
from dovetail.isa.memories import Memory

__all__ = ["Space", "Touched", "touched"]

Space = Memory | None
"""A scratchpad, or DRAM (None)."""


@dataclass(frozen=True, slots=True)
class Touched:
    """Distinct places that one instruction reads or writes in one space, ascending.

    Places are words; in DRAM, words of the bus.
    """

    space: Space
    places: NDArray[np.int64]
    writes: bool

    def meets(self, other: "Touched") -> bool:
        """Whether both touch one place of one space."""
        if self.space is not other.space:
            return False
        if self.places[0] > other.places[-1] or other.places[0] > self.places[-1]:
            return False
        return len(np.intersect1d(self.places, other.places, assume_unique=True)) > 0


def touched(instruction: Instruction, config: HardwareConfig) -> Iterator[Touched]:
    """Every space the instruction touches; reads come before writes."""
    for touch in scratchpad_reads(instruction, config):
        yield Touched(touch.memory, np.unique(touch.addresses), writes=False)
    for touch in scratchpad_writes(instruction, config):
        yield Touched(touch.memory, np.unique(touch.addresses), writes=True)
    if isinstance(instruction, Load | Store):
        bus = config.bus_bytes
        rows = [
            np.arange(start // bus, (start + size) // bus)
            for start, size in dram_rows(instruction, config)
        ]
        if rows:
            places = np.unique(np.concatenate(rows))
            yield Touched(None, places, writes=isinstance(instruction, Store))
