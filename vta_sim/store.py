"""What a STORE writes to DRAM, and how much of it when the run is stopped."""

import numpy as np

from dovetail.isa.footprint import scratchpad_reads
from dovetail.isa.instructions import Store
from dovetail.isa.memories import Memory
from dovetail.isa.state import MachineState

from .bursts import burst_addresses
from .memory import NEVER, Transfer
from .strides import dram_block, scratchpad_block

__all__ = ["StoreWrite"]


class StoreWrite:
    """A STORE that has been accepted: it has read ACT, and DRAM is to be written.

    index: of the instruction.
    """

    def __init__(self, state: MachineState, store: Store, transfer: Transfer) -> None:
        self.index = transfer.index
        self._state, self._store, self._transfer = state, store, transfer
        shape = (store.count_z, store.count_y, store.count_x)
        words = scratchpad_block(state, Memory.ACT, store.sram_address, store, shape)
        if words is None:
            (touch,) = scratchpad_reads(store, state.config)
            words = state.words(Memory.ACT)[touch.addresses]
        self._data = np.ascontiguousarray(words).copy().reshape(*shape[:2], -1)

    def write(self, stopped_at: int, interval: int) -> None:
        """Write all of it; after a stop in cycle ``stopped_at``, the beats on offer by then.

        interval: cycles from one beat of a burst to the next.
        """
        if stopped_at == NEVER:
            block = dram_block(self._state, self._store)
            if block is not None:
                block[...] = self._data
                return
        transfer, bus = self._transfer, self._state.config.bus_bytes
        bursts = burst_addresses(self._store, self._state.config)
        data = self._data.reshape(-1)
        place, before = 0, -1
        for (address, beats), start, taken in zip(
            bursts, transfer.starts, transfer.takes, strict=False
        ):
            # The first beat is offered when the burst is taken and the beat before is gone, each
            # other one in the cycle after the beat before it.
            offered = 0
            if max(taken, before) < stopped_at:
                offered = min(beats, 1 + max(0, (stopped_at - 1 - start) // interval + 1))
            at = address - self._state.dram_base
            self._state.dram[at : at + offered * bus] = data[place : place + offered * bus]
            place += beats * bus
            before = start + (beats - 1) * interval
