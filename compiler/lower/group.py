"""Loops, scheduled as they are written, of groups whose anchor has no definition yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..define.definition import Definition, Kind
from ..define.group import GroupWriter
from ..define.table import ANCHORS as DEFINED
from ..graph.ir import Graph, Node
from ..loops.expressions import Buffer, Constant
from ..loops.ir import Function, Stmt
from ..schedule.rules.cpu.machine import Machine
from .borders import border
from .decisions import Decisions
from .scope import Scope
from .table import ANCHORS

__all__ = ["Lowered", "lower_group"]

WRITERS: Mapping[type[Any], tuple[Kind, Any]] = {
    **DEFINED,
    **{operator: (Kind.ELEMENTS, anchor) for operator, anchor in ANCHORS.items()},
}


@dataclass(frozen=True, slots=True)
class Lowered:
    """function: its buffers are called ``in0``, ``out0``, ...

    inputs, outputs: the tensors that belong to its buffers.  taken: all decisions.
    """

    function: Function
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    taken: Decisions = field(default_factory=Decisions)


def lower_group(
    graph: Graph,
    nodes: Sequence[Node],
    name: str = "group",
    machine: Machine | None = None,
    decisions: Decisions | None = None,
) -> Lowered:
    """The loop program of ``nodes``, which are in the order of the graph, for a CPU.

    Raises UnsupportedOperatorError for an operator that has no lowering, ScheduleError for
    decisions that do not suit the anchor.
    """
    scope = Scope(machine=machine or Machine(), decisions=decisions or Decisions())
    found: Definition = _Lowering(graph, nodes, name, scope, WRITERS).run()
    return Lowered(found.function, found.inputs, found.outputs, scope.taken)


@dataclass(slots=True)
class _Lowering(GroupWriter):
    scope: Scope

    def surround(self, buffer: Buffer, pads: Sequence[tuple[int, int]], value: Constant) -> Stmt:
        """In vectors, and for threads."""
        return border(buffer, pads, value, self.scope)
