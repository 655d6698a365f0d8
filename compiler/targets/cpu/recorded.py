"""Kernels of groups: their definitions after the steps of a rule, or of a record that was found."""

import warnings
from collections.abc import Sequence

from dovetail.isa.frozen import frozen

from ...define.definition import Definition, Kind
from ...define.group import define_group
from ...errors import ScheduleError
from ...graph.ir import Graph, Node
from ...graph.keys import group_key
from ...loops.ir import Function
from ...loops.text import to_text
from ...schedule.records import KernelRecord, Records, StaleRecordWarning
from ...schedule.rules.cpu.group import schedule_group
from ...schedule.rules.cpu.machine import Machine
from ...schedule.steps.schedule import Schedule, Step
from ...schedule.steps.trace import replay
from .llvm.intrinsics import INTRINSICS

__all__ = ["Kernel", "recorded_kernel", "schedule_kernel", "tuned_kernel"]


@frozen
class Kernel:
    """A group's definition, and its schedule: the trace that makes the function of it."""

    definition: Definition
    schedule: Schedule

    @property
    def function(self) -> Function:
        """The function to compile."""
        return self.schedule.function

    @property
    def inputs(self) -> tuple[str, ...]:
        """The tensors that it reads."""
        return self.definition.inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        """The tensors that it computes."""
        return self.definition.outputs


Known = dict[tuple[Kind, str], Schedule]
"""The rules' schedules of definitions, by kind and text."""


def tuned_kernel(
    graph: Graph, nodes: Sequence[Node], machine: Machine, records: Records, known: Known
) -> Kernel:
    """The kernel of a group by its record, if there is one that suits, or else by the rules.

    known: gets the rules' schedules for ``machine``; layers of equal loops share them.
    Warns of a record that does not suit.  Raises UnsupportedOperatorError for an operator that has
    no definition.
    """
    record = records.kernels.get(group_key(graph, nodes)) if records.kernels else None
    if record is None:
        definition = define_group(graph, nodes)
        key = definition.kind, to_text(definition.function)
        if key not in known:
            known[key] = schedule_group(definition, machine, INTRINSICS)
        return Kernel(definition, known[key])
    try:
        return recorded_kernel(graph, nodes, machine, record)
    except ScheduleError as problem:
        warnings.warn(
            f"the schedule record of {nodes[-1].origin!r} is of another version and is not used: "
            f"{problem}; tune again",
            StaleRecordWarning,
            stacklevel=2,
        )
        return schedule_kernel(graph, nodes, machine)


def recorded_kernel(
    graph: Graph, nodes: Sequence[Node], machine: Machine, record: KernelRecord
) -> Kernel:
    """The kernel of a group by the trace of a record; by the rules if that has none.

    Raises ScheduleError for a record that does not suit the group.
    """
    if not record.steps:
        return schedule_kernel(graph, nodes, machine)
    definition = define_group(graph, nodes)
    return Kernel(definition, replay(definition.function, record.steps, INTRINSICS))


def schedule_kernel(
    graph: Graph, nodes: Sequence[Node], machine: Machine, given: Sequence[Step] = ()
) -> Kernel:
    """The kernel of a group by the rules; given: steps that a search chose in their place.

    Raises ScheduleError for given steps that do not apply.
    """
    definition = define_group(graph, nodes)
    return Kernel(definition, schedule_group(definition, machine, INTRINSICS, given))
