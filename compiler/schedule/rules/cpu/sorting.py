"""Sorting: keys are compared in vectors."""

from collections.abc import Iterator, Sequence

from ....loops.expressions import Scope
from ....loops.ir import Allocate, For, Stmt, Store, Update
from ....loops.traverse import loads, walk
from ...steps.schedule import Schedule, Step
from .machine import Machine

__all__ = ["schedule_sorting"]


def schedule_sorting(schedule: Schedule, machine: Machine, given: Sequence[Step] = ()) -> Schedule:
    """Counters of a block's keys stay in registers, all of them counting at once.

    Whether there is a candidate among the elements at hand is found in vectors, too.
    """
    for stmt in list(walk(schedule.function.body)):
        if isinstance(stmt, Allocate) and stmt.buffer.shape:
            loops = list(_over(stmt.body, stmt.buffer.name))
            if any(isinstance(loop.body, Update) for loop in loops):
                for loop in loops:
                    schedule = schedule.vectorize(loop.variable)
                schedule = schedule.set_scope(stmt.buffer.name, Scope.REGISTER)
        elif isinstance(stmt, For) and isinstance(stmt.body, Update) and not stmt.body.indices:
            schedule = schedule.vectorize(stmt.variable)
    return schedule


def _over(stmt: Stmt, buffer: str) -> Iterator[For]:
    """The loops of one write, from or to ``buffer``."""
    for loop in walk(stmt):
        if isinstance(loop, For) and isinstance(loop.body, Store | Update):
            read = (load.buffer.name for load in loads(loop.body.value))
            if loop.body.buffer.name == buffer or buffer in read:
                yield loop
