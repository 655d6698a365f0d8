"""Loop programs of groups, by the records of schedules that were found by search."""

import warnings
from collections.abc import Sequence
from dataclasses import replace

from ...define.group import define_group, kind_of
from ...errors import ScheduleError
from ...graph.ir import Graph, Node
from ...graph.keys import group_key
from ...lower.decisions import Decisions
from ...lower.group import Lowered, lower_group
from ...schedule.records import KernelRecord, Records
from ...schedule.rules.cpu.group import schedule_group
from ...schedule.rules.cpu.machine import Machine
from ...schedule.rules.cpu.table import RULES
from ...schedule.steps.trace import replay
from .llvm.intrinsics import INTRINSICS

__all__ = ["StaleRecordWarning", "lower_recorded", "lower_with"]


class StaleRecordWarning(UserWarning):
    """A record does not suit the loops that the compiler makes now."""


def lower_recorded(
    graph: Graph, nodes: Sequence[Node], machine: Machine, records: Records
) -> Lowered:
    """The kernel of a group, by its record if there is one that suits.

    Warns of a record that does not suit: the rules decide then.
    """
    record = records.kernels.get(group_key(graph, nodes)) if records.kernels else None
    if record is None:
        return lower_with(graph, nodes, machine, KernelRecord())
    try:
        return lower_with(graph, nodes, machine, record)
    except ScheduleError as problem:
        warnings.warn(
            f"the schedule record of {nodes[-1].origin!r} is of another version and is not used: "
            f"{problem}; tune anew",
            StaleRecordWarning,
            stacklevel=2,
        )
        return lower_with(graph, nodes, machine, KernelRecord())


def lower_with(
    graph: Graph, nodes: Sequence[Node], machine: Machine, record: KernelRecord
) -> Lowered:
    """The definition after the record's steps, or else the rule's.

    Groups of kinds that have no rule yet are lowered with what ``record`` decides, before its
    steps.  Raises ScheduleError for a record that does not suit the group.
    """
    if kind_of(nodes) in RULES:
        definition = define_group(graph, nodes)
        if record.steps:
            scheduled = replay(definition.function, record.steps, INTRINSICS)
        else:
            scheduled = schedule_group(definition, machine, INTRINSICS)
        return Lowered(scheduled.function, definition.inputs, definition.outputs)
    decisions = Decisions.from_record(record.decisions)
    lowered = lower_group(graph, nodes, machine=machine, decisions=decisions)
    if not record.steps:
        return lowered
    function = replay(lowered.function, record.steps).function
    return replace(lowered, function=function)
