"""The timeline of a run: when each instruction was where, and what it waited for."""

from dataclasses import dataclass
from enum import Enum

from dovetail.isa.config import HardwareConfig
from dovetail.isa.latency import compute_latency
from dovetail.isa.memories import Unit

from .machine import SimResult

__all__ = ["TraceEntry", "Wait", "trace"]


class Wait(Enum):
    """What keeps a unit that is free from starting its next instruction."""

    NOTHING = "nothing"
    FETCH = "fetch"
    """The instruction has not come from DRAM."""
    QUEUE = "queue"
    """It has come, but an instruction before it waits for room in the queue of another unit."""
    TOKEN = "token"
    """A token it takes is not there, or one it gives has no room."""
    PORT = "port"
    """Another instruction holds a memory bank it needs."""


@dataclass(frozen=True, slots=True)
class TraceEntry:
    """One instruction of a run; cycles, -1 for what never was.

    fetched: last beat from DRAM.  queued: dispatched to its unit.  start: accepted; the unit works
    from the next cycle on.  end: its last cycle. waited: cycles the unit was free and did not start
    it, by what was in the way; no zeros.
    """

    index: int
    unit: Unit
    fetched: int
    queued: int
    start: int
    end: int
    waited: dict[Wait, int]

    @property
    def reason(self) -> Wait:
        """What it waited for longest."""
        return max(self.waited, key=lambda wait: self.waited[wait], default=Wait.NOTHING)


def trace(result: SimResult, config: HardwareConfig) -> tuple[TraceEntry, ...]:
    """One entry for each instruction that was dispatched, in program order."""
    entries = []
    latency = compute_latency(config)
    free = dict.fromkeys(Unit, 0)
    for index, code in enumerate(result.units):
        if code < 0:
            break
        unit = Unit(int(code))
        fetched, queued = int(result.fetched[index]), int(result.dispatched[index])
        start, end = int(result.accepted[index]), int(result.ended[index])
        # Dispatched in the cycle after it was fetched, it is at hand in the one after that.
        there = fetched + 2
        waited = {
            Wait.FETCH: max(0, there - free[unit]),
            Wait.QUEUE: max(0, queued + 1 - max(there, free[unit])),
            Wait.TOKEN: int(result.waited_token[index]),
            Wait.PORT: int(result.waited_port[index]),
        }
        present = {wait: cycles for wait, cycles in waited.items() if cycles}
        entries.append(TraceEntry(index, unit, fetched, queued, start, end, present))
        if end >= 0:
            free[unit] = end - latency[unit] if unit in latency else end + 1
    return tuple(entries)
