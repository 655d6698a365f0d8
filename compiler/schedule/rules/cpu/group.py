"""The schedule of a group's definition for a CPU."""

from collections.abc import Mapping, Sequence

from ....define.definition import Definition
from ....loops.intrinsic import Intrinsic
from ...steps.schedule import Schedule, Step
from .borders import schedule_borders
from .machine import Machine
from .table import RULES

__all__ = ["schedule_group"]


def schedule_group(
    definition: Definition,
    machine: Machine,
    intrinsics: Mapping[str, Intrinsic],
    given: Sequence[Step] = (),
) -> Schedule:
    """The definition after the steps of its kind's rule; the trace is in it.

    given: steps that a search chose (see Rule).  Raises ScheduleError for some that do not apply.
    """
    schedule = Schedule.of(definition.function, intrinsics)
    return schedule_borders(RULES[definition.kind](schedule, machine, given), machine)
