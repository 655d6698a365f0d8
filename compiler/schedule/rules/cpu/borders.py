"""Borders of a constant around results, in vectors."""

from ....loops.expressions import Constant
from ....loops.ir import For, LoopKind, Store
from ....loops.traverse import variables, walk
from ...steps.schedule import Schedule
from .machine import Machine

__all__ = ["schedule_borders"]


def schedule_borders(schedule: Schedule, machine: Machine) -> Schedule:
    """Innermost loops along rows that do nothing but store a constant become vectors."""
    for stmt in walk(schedule.function.body):
        if isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL and isinstance(stmt.body, Store):
            store = stmt.body
            along = store.indices and stmt.variable in variables(store.indices[-1])
            if along and isinstance(store.value, Constant):
                schedule = schedule.vectorize(stmt.variable)
    return schedule
