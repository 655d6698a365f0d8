"""Bytes of a STORE that reach DRAM when the run is stopped."""

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.state import MachineState

from .event_loop import Machine

__all__ = ["finish_store"]

LAST_ADDRESS = (1 << 32) - 1


def finish_store(state: MachineState, machine: Machine, stored: NDArray[np.uint8]) -> None:
    """Write the beats of the last STORE that were on offer when ``machine`` was stopped.

    stored: uint8[n], what it has read.
    """
    store, plans, bus = machine.port.store, machine.issue.plans, state.config.bus_bytes
    place, before, burst = 0, -1, 0
    for start in _rows(machine):
        end = place + int(plans.row_bytes[store.index])
        while place < end and burst < store.accepted:
            size = int(store.beats[burst]) * bus
            first = int(store.starts[burst])
            # The first beat is offered when the burst is taken and the beat before is gone, each
            # other one in the cycle after the beat before it.
            offered = 0
            if max(int(store.takes[burst]), before) < machine.stopped_at:
                waited = (machine.stopped_at - 1 - first) // machine.port.interval + 1
                offered = min(size, bus * (1 + max(0, waited)))
            at = (start & LAST_ADDRESS) - state.dram_base
            state.dram[at : at + offered] = stored[place : place + offered]
            before = first + (size // bus - 1) * machine.port.interval
            place, start, burst = place + size, start + size, burst + 1


def _rows(machine: Machine) -> list[int]:
    """First byte address of each row, in order."""
    plans, index = machine.issue.plans, machine.port.store.index
    return [
        int(plans.address[index] + z * plans.stride_z[index] + y * plans.stride_y[index])
        for z in range(plans.planes[index])
        for y in range(plans.rows[index])
    ]
