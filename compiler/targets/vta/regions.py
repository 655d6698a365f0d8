"""Words that each instruction reads and writes, as arrays, for dependence analysis."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import (
    distinct,
    dram_word_bytes,
    scratchpad_reads,
    scratchpad_writes,
)
from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Instruction, Load, Store
from dovetail.isa.memories import Memory

__all__ = ["Space", "Touched", "touched"]

Space = Memory | None
"""A scratchpad, or DRAM (None)."""


DRAM_BYTES = 1 << 32
"""DRAM addresses wrap."""


@frozen
class Touched:
    """Distinct places that one instruction reads or writes in one space, ascending.

    Places are words; in DRAM, words of the bus.
    """

    space: Space
    places: NDArray[np.int64]
    writes: bool


def touched(instruction: Instruction, config: HardwareConfig) -> Iterator[Touched]:
    """Every space the instruction touches; reads come before writes."""
    for touch in scratchpad_reads(instruction, config, distinct):
        yield Touched(touch.memory, touch.addresses, writes=False)
    for touch in scratchpad_writes(instruction, config, distinct):
        yield Touched(touch.memory, touch.addresses, writes=True)
    if isinstance(instruction, Load | Store):
        words = _dram_words(instruction, config)
        if len(words):
            yield Touched(None, words, writes=isinstance(instruction, Store))


def _dram_words(moved: Load | Store, config: HardwareConfig) -> NDArray[np.int64]:
    """Words of the bus that are moved, ascending."""
    bus = config.bus_bytes
    row = moved.count_x * dram_word_bytes(moved, config) // bus
    if not row * moved.count_y:
        return np.empty(0, np.int64)
    extent = (row, moved.count_y, moved.count_z)
    stride = (1, moved.dram_stride_y // bus, moved.dram_stride_z // bus)
    return distinct(moved.dram_address // bus, extent, stride, DRAM_BYTES // bus)
