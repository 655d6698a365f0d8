"""Loop programs of groups, by the records of schedules that were found by search."""

import warnings
from collections.abc import Sequence
from dataclasses import replace

from ...errors import ScheduleError
from ...graph.ir import Graph, Node
from ...graph.keys import group_key
from ...lower.decisions import Decisions
from ...lower.group import Lowered, lower_group
from ...lower.tiling import Machine
from ...schedule.records import KernelRecord, Records
from ...schedule.steps.trace import replay

__all__ = ["StaleRecordWarning", "lower_recorded", "lower_with"]


class StaleRecordWarning(UserWarning):
    """A record does not suit the loops that the compiler makes now."""


def lower_recorded(
    graph: Graph, nodes: Sequence[Node], machine: Machine, records: Records
) -> Lowered:
    """As ``lower_group``, by the record of this group if there is one that suits.

    Warns of a record that does not suit: the group is lowered by the rules then.
    """
    record = records.kernels.get(group_key(graph, nodes)) if records.kernels else None
    if record is None:
        return lower_group(graph, nodes, machine=machine)
    try:
        return lower_with(graph, nodes, machine, record)
    except ScheduleError as problem:
        warnings.warn(
            f"the schedule record of {nodes[-1].origin!r} is of another version and is not used: "
            f"{problem}; tune anew",
            StaleRecordWarning,
            stacklevel=2,
        )
        return lower_group(graph, nodes, machine=machine)


def lower_with(
    graph: Graph, nodes: Sequence[Node], machine: Machine, record: KernelRecord
) -> Lowered:
    """As ``lower_group``, with what ``record`` decides, and after its steps.

    Raises ScheduleError for a record that does not suit the group.
    """
    decisions = Decisions.from_record(record.decisions)
    lowered = lower_group(graph, nodes, machine=machine, decisions=decisions)
    if not record.steps:
        return lowered
    function = replay(lowered.function, record.steps).function
    return replace(lowered, function=function)
