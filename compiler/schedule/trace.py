"""Traces as JSON values: what a tuning record holds, and how it becomes a schedule again."""

from collections.abc import Iterable, Mapping

from ..tensor.ir import Kernel
from .primitives import Schedule, ScheduleError, from_record

__all__ = ["replay"]


def replay(kernel: Kernel, record: Iterable[Mapping[str, object]]) -> Schedule:
    """The schedule of ``kernel`` whose ``record`` is given: the same kernel and trace.

    Raises ScheduleError, naming the entry, when one is no primitive or does not apply.
    """
    schedule = Schedule(kernel)
    for number, entry in enumerate(record):
        try:
            schedule = schedule.then(from_record(entry))
        except ScheduleError as error:
            raise ScheduleError(f"trace entry {number}: {error}") from None
    return schedule
