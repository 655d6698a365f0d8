"""State of the accelerator, as symbols."""

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from .symbols import Array, Symbols, constants, integers, is_constant, write

__all__ = ["State"]

SYMBOLIC = (Memory.ACT, Memory.WGT, Memory.ACC)


class State:
    """Scratchpads and DRAM.

    words: of ACT, WGT and ACC, [depth, elements].  taps: int8 and tables: int8, [depth, block], are
    known, and so are parameters: uint8[depth, bytes], but those ``made`` from rows or given for
    each run: bool[depth].
    dram: all of it; bytes: uint8, where ``known``.
    """

    def __init__(self, config: HardwareConfig, dram: Array) -> None:
        """dram: uint8, all of it known."""
        self.config, self.bytes = config, dram
        self.dram = constants(dram.view(np.int8))
        self.known = np.ones(len(dram), bool)
        self.words = {memory: self._empty(memory) for memory in SYMBOLIC}
        self.words[Memory.ACC] = integers(self.words[Memory.ACC].values)
        self.parameters = np.zeros((config.par_depth, config.word_bytes(Memory.PAR)), np.uint8)
        self.made = np.zeros(config.par_depth, bool)
        self.tables = np.zeros((config.tab_depth, config.block), np.int8)
        self.taps = np.zeros((config.tap_depth, config.block), np.int8)

    def _empty(self, memory: Memory) -> Symbols:
        lanes = self.config.block * (self.config.block if memory is Memory.WGT else 1)
        return constants(np.zeros((self.config.depth(memory), lanes), np.int8))

    def put(self, places: Array, x: Symbols) -> None:
        """Symbols of bytes to places in DRAM."""
        write(self.dram, places, x)
        known = is_constant(x)
        self.known[places] = known
        self.bytes[places[known]] = x.values[known].astype(np.int8).view(np.uint8)
