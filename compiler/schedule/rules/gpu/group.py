"""The schedule of a group's definition for a GPU."""

from collections.abc import Mapping

from ....define.definition import Definition, Kind
from ....loops.intrinsic import Intrinsic
from ...steps.schedule import Schedule
from .attention import schedule_attention
from .bind import bind_nests
from .choice import DEFAULT, Choice
from .convolutions import schedule_convolution
from .products import schedule_products

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
        return schedule_convolution(schedule, choice)
    return bind_nests(schedule, choice.threads)
