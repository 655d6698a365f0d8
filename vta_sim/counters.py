"""The hardware's counters, from the cycles of every instruction."""

import numpy as np

from dovetail.isa.memories import Unit
from dovetail.isa.registers import COUNTERS

from .event_loop import Machine

__all__ = ["count"]


def count(machine: Machine) -> dict[str, int]:
    """Every counter of ``dovetail.isa.registers.COUNTERS`` after the run of ``machine``."""
    issue, last, plans = machine.issue, machine.last, machine.issue.plans
    values = dict.fromkeys((name for name, _ in COUNTERS), 0)
    values["cycles"] = last + 1
    values["instructions"] = int(np.count_nonzero(issue.ended >= 0))
    busy = _busy(machine)
    dispatched, units = issue.dispatched >= 0, plans.units
    columns = np.stack((issue.waited_token, issue.waited_port, busy))
    for unit in Unit:
        sums = columns[:, dispatched & (units == int(unit))].sum(axis=1).tolist()
        for name, cycles in zip(("stall_token", "stall_port", "busy"), sums, strict=True):
            values[f"{unit.name.lower()}_{name}"] = cycles
    values["fetch_beats"] = machine.fetched * machine.port.fetch_beats
    values["load_beats"] = machine.port.load.moved
    values["store_beats"] = machine.port.store.moved
    return values


def _busy(machine: Machine) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Cycles in which a unit worked on each: of GEMM and VECTOR, those in which it issued; of LOAD,
    those after the end of the one before.
    """
    accepted, ended, issues = (
        machine.issue.accepted,
        machine.issue.ended,
        machine.issue.plans.issues,
    )
    since = machine.last - accepted
    until = np.where(ended >= 0, ended, machine.last)
    began = accepted.copy()
    plans = machine.issue.plans
    loads = plans.order[: plans.first[1]]
    began[loads[1:]] = np.maximum(accepted[loads[1:]], until[loads[:-1]])
    whole = until - began
    worked = np.where(issues > 0, np.minimum(issues, since), whole)
    return np.where(accepted >= 0, worked, 0)
