"""The data's side of a run, as far as one likes: what memories hold between two instructions."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES
from dovetail.isa.encoding import decode
from dovetail.isa.footprint import block_bytes, nest
from dovetail.isa.instructions import Store
from dovetail.isa.launch import Launch
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.state import MachineState
from dovetail.isa.table import InstructionTable, decode_table

from .replay import replay

__all__ = ["Replayer"]

STORE = int(Unit.STORE)


class Replayer:
    """Memories of a launch, changed by one step after the other.

    A step is ``2 * index`` of an instruction, or that plus 1 for the writing half of a STORE.
    Taken in the order of a run's cycles (docs/simulator.md), they are the simulator's data.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        first, count = launch.program_address, launch.program_count
        code = launch.dram[first : first + count * INSTRUCTION_BYTES]
        self._words = code.reshape(-1, INSTRUCTION_BYTES).copy()
        self._table = decode_table(self._words, launch.config)
        self.restart()

    def restart(self) -> None:
        """Back to the memories before the run."""
        self.state = MachineState.zeros(self._launch.config, self._launch.dram.copy())
        self._read: dict[int, NDArray[np.uint8]] = {}

    def apply(self, steps: Sequence[int]) -> None:
        """Change ``state`` by ``steps``, in their order."""
        run: list[int] = []
        for step in steps:
            if self._table.units[step >> 1] != STORE:
                run.append(step)
                continue
            self._replay(run)
            run = []
            self._store(step >> 1, writes=bool(step & 1))
        self._replay(run)

    def _replay(self, steps: list[int]) -> None:
        """Instructions other than STORE."""
        if not steps:
            return
        chosen = np.array(steps, np.int64) >> 1
        table = InstructionTable(self._table.units[chosen], self._table.rows[chosen])
        replay(self.state, table, 2 * np.arange(len(chosen), dtype=np.int64))

    def _store(self, index: int, *, writes: bool) -> None:
        instruction = decode(self._words[index].tobytes())
        assert isinstance(instruction, Store)
        config = self._launch.config
        size = config.word_bytes(Memory.ACT)
        if not writes:
            counts = (instruction.count_x, instruction.count_y, instruction.count_z)
            strides = (1, instruction.sram_stride_y, instruction.sram_stride_z)
            words = nest(instruction.sram_address, counts, strides, config.act_depth)
            self._read[index] = self.state.words(Memory.ACT)[words]
            return
        starts = block_bytes(instruction.dram_address, instruction, size)
        places = (starts[:, None] + np.arange(size)) & 0xFFFFFFFF
        self.state.dram[places] = self._read.pop(index)
