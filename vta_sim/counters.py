"""The hardware's counters, from the cycles of every instruction."""

from dataclasses import dataclass

from dovetail.isa.memories import Unit
from dovetail.isa.registers import COUNTERS

from .units import Issue

__all__ = ["Beats", "count"]


@dataclass(frozen=True, slots=True)
class Beats:
    """Beats that the memory moved for FETCH, LOAD and STORE."""

    fetch: int
    load: int
    store: int


def count(issue: Issue, last: int, beats: Beats) -> dict[str, int]:
    """Every counter of ``dovetail.isa.registers.COUNTERS``; ``last`` is the run's last cycle."""
    values = dict.fromkeys((name for name, _ in COUNTERS), 0)
    values["cycles"] = last + 1
    values["instructions"] = sum(end >= 0 for end in issue.ended)
    for unit, queue in zip(Unit, issue.queues, strict=True):
        name = unit.name.lower()
        values[f"{name}_stall_token"] = sum(issue.waited_token[index] for index in queue)
        values[f"{name}_stall_port"] = sum(issue.waited_port[index] for index in queue)
        values[f"{name}_busy"] = sum(
            _busy(issue, index, last) for index in queue[: issue.done[unit]]
        )
    values["fetch_beats"] = beats.fetch
    values["load_beats"] = beats.load
    values["store_beats"] = beats.store
    return values


def _busy(issue: Issue, index: int, last: int) -> int:
    """Cycles in which the unit worked on it: of GEMM and VECTOR, those in which it issued."""
    accepted, ended, issues = issue.accepted[index], issue.ended[index], issue.plans[index].issues
    if issues:
        return min(issues, last - accepted)
    return (ended if ended >= 0 else last) - accepted
