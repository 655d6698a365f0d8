"""Passes over rows, in vectors."""

from collections.abc import Sequence

from ....loops.ir import Allocate, For, Update
from ....loops.traverse import walk
from ...steps.schedule import Schedule, Step
from .machine import Machine

__all__ = ["schedule_rows"]

LANES = 16
"""Accumulators of a reduction along a row."""


def schedule_rows(schedule: Schedule, machine: Machine, given: Sequence[Step] = ()) -> Schedule:
    """Each pass runs in vectors; what it reduces to is reduced in the lanes of one first."""
    kept = (each for each in walk(schedule.function.body) if isinstance(each, Allocate))
    row = next(kept, None)
    for loop in walk(row) if row else ():
        if isinstance(loop, For):
            updated = [each.buffer.name for each in walk(loop) if isinstance(each, Update)]
            if updated:
                schedule = schedule.partial_lanes(updated[0], loop.variable, LANES)
            else:
                schedule = schedule.lanes(loop.variable, LANES)
    return schedule
