"""Recurrences: the sums of a step by tiles in registers, its state in vectors."""

from collections.abc import Iterator, Sequence

from ....loops.expressions import Constant
from ....loops.ir import Allocate, For, Stmt
from ....loops.traverse import bodies, walk
from ...steps.schedule import Schedule, Step
from ...steps.tile import band
from .contraction import tile_reduction
from .machine import Machine

__all__ = ["schedule_recurrent"]

LANES = 16
"""Elements of the state at a time; what is left over goes one by one."""


def schedule_recurrent(
    schedule: Schedule, machine: Machine, given: Sequence[Step] = ()
) -> Schedule:
    """Schedule the body of the loop over steps; the state is copied as it is."""
    gates = next((x for x in walk(schedule.function.body) if isinstance(x, Allocate)), None)
    for loop in list(_nests(gates)) if gates else ():
        *_, last = band(loop)
        if isinstance(last.body, Allocate):
            schedule = tile_reduction(schedule, last.body.buffer.name, machine, given)
        elif isinstance(last.extent, Constant) and last.extent.value >= LANES:
            schedule = schedule.lanes(last.variable, LANES, "serial")
    return schedule


def _nests(stmt: Stmt) -> Iterator[For]:
    """The outermost loops in ``stmt``."""
    if isinstance(stmt, For):
        yield stmt
    else:
        for each in bodies(stmt):
            yield from _nests(each)
