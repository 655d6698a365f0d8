"""The schedule of a group's definition for a GPU."""

from ....define.definition import Definition
from ...steps.schedule import Schedule
from .bind import bind_nests

__all__ = ["schedule_group"]


def schedule_group(definition: Definition) -> Schedule:
    """The definition with its loops bound to blocks and threads; the trace is in it."""
    return bind_nests(Schedule.of(definition.function))
