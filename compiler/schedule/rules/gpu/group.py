"""The schedule of a group's definition for a GPU."""

from ....define.definition import Definition, Kind
from ...steps.schedule import Schedule
from .bind import bind_nests
from .convolutions import schedule_convolution
from .products import schedule_products

__all__ = ["schedule_group"]


def schedule_group(definition: Definition) -> Schedule:
    """The definition with its loops bound to blocks and threads; the trace is in it."""
    schedule = Schedule.of(definition.function)
    if definition.kind is Kind.CONTRACTION:
        return schedule_products(schedule)
    if definition.kind is Kind.CONVOLUTION:
        return schedule_convolution(schedule)
    return bind_nests(schedule)
