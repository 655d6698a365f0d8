"""The schedule of a group's definition for a GPU."""

from collections.abc import Mapping
from contextlib import suppress

from ....define.definition import Definition, Kind
from ....errors import ScheduleError
from ....loops.intrinsic import Intrinsic
from ....loops.ir import Invoke
from ....loops.traverse import walk
from ...steps.schedule import Schedule
from .attention import schedule_attention
from .bind import bind_nests
from .choice import DEFAULT, Choice
from .convolutions import schedule_convolution
from .products import schedule_products
from .reductions import schedule_reduction
from .rows import schedule_rows

__all__ = ["schedule_group"]


def schedule_group(
    definition: Definition,
    intrinsics: Mapping[str, Intrinsic] | None = None,
    choice: Choice = DEFAULT,
) -> Schedule:
    """The definition with its loops bound to blocks and threads; the trace is in it.

    intrinsics: of tensor cores, which products use if they can.  choice: what a search found.
    """
    schedule = Schedule.of(definition.function, intrinsics)
    if definition.kind is Kind.ATTENTION:
        return schedule_attention(schedule, choice)
    if definition.kind is Kind.CONTRACTION:
        return schedule_products(schedule, choice)
    if definition.kind is Kind.CONVOLUTION:
        return _convolution(schedule, choice)
    if definition.kind is Kind.ROWS:
        with suppress(ScheduleError):
            return schedule_rows(schedule, choice.lanes)
    return bind_nests(schedule, choice.threads)


def _convolution(schedule: Schedule, choice: Choice) -> Schedule:
    """On tensor cores if it can be; else by threads that share sums, where results are few."""
    found = schedule_convolution(schedule, choice)
    if not any(isinstance(each, Invoke) for each in walk(found.function.body)):
        with suppress(ScheduleError):
            return schedule_reduction(schedule, choice.lanes)
    return found
