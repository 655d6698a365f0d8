"""Cycles of each unit: at work, waiting, without anything to do."""

from dovetail.isa.frozen import frozen

from ..result import RunResult

__all__ = ["UnitProfile", "profile_units"]


@frozen
class UnitProfile:
    """One unit of a run; the four add up to its cycles.

    busy: at work.  token, bank: not at work, and its next instruction waited for one.  idle: there
    was no next instruction.
    """

    unit: str
    busy: int
    token: int
    bank: int
    idle: int


def profile_units(result: RunResult) -> tuple[UnitProfile, ...]:
    """Figures of LOAD, GEMM, VECTOR and STORE, in ``result`` of an accelerator.

    The counters of LOAD count waits of its next instruction also while the one before is at work,
    with ``load_ahead``; here such cycles are busy.
    """
    found = []
    for unit in ("LOAD", "GEMM", "VECTOR", "STORE"):
        kinds = ("busy", "stall_token", "stall_port")
        busy, token, bank = (result.counters[f"{unit.lower()}_{kind}"] for kind in kinds)
        if unit == "LOAD":
            meanwhile = token + bank - _waits_of_load(result)
            bank -= max(0, meanwhile - token)
            token = max(0, token - meanwhile)
        idle = (result.cycles or 0) - busy - token - bank
        found.append(UnitProfile(unit, busy, token, bank, idle))
    return tuple(found)


def _waits_of_load(result: RunResult) -> int:
    """Cycles in which an instruction of LOAD waited and none was at work."""
    found = before = 0
    for entry in result.timeline:
        if entry.unit == "LOAD" and entry.start >= 0:
            found += max(0, entry.start - 1 - max(before, entry.queued))
            before = max(before, entry.end)
    return found
