"""The hardware's counters, from the cycles of every instruction."""

import numpy as np

from dovetail.isa.memories import Unit
from dovetail.isa.registers import COUNTERS

from .event_loop import Machine

__all__ = ["count"]


def count(machine: Machine) -> dict[str, int]:
    """Every counter of ``dovetail.isa.registers.COUNTERS`` after the run of ``machine``."""
    issue, last = machine.issue, machine.last
    values = dict.fromkeys((name for name, _ in COUNTERS), 0)
    values["cycles"] = last + 1
    values["instructions"] = int(np.count_nonzero(issue.ended >= 0))
    busy = _busy(machine)
    dispatched = issue.dispatched >= 0
    for unit in Unit:
        name, mine = unit.name.lower(), dispatched & (issue.plans.units == int(unit))
        values[f"{name}_stall_token"] = int(issue.waited_token[mine].sum())
        values[f"{name}_stall_port"] = int(issue.waited_port[mine].sum())
        values[f"{name}_busy"] = int(busy[mine].sum())
    values["fetch_beats"] = machine.fetched * machine.port.fetch_beats
    values["load_beats"] = machine.port.load.moved
    values["store_beats"] = machine.port.store.moved
    return values


def _busy(machine: Machine) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Cycles in which a unit worked on each: of GEMM and VECTOR, those in which it issued."""
    issue, last = machine.issue, machine.last
    since = last - issue.accepted
    whole = np.where(issue.ended >= 0, issue.ended, last) - issue.accepted
    worked = np.where(issue.plans.issues > 0, np.minimum(issue.plans.issues, since), whole)
    return np.where(issue.accepted >= 0, worked, 0)
