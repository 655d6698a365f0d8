"""Loops, scheduled as they are written, of groups whose anchor has no definition yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..define.definition import Definition, Kind
from ..define.group import GroupWriter
from ..define.table import ANCHORS as DEFINED
from ..graph.ir import Graph, Node
from ..graph.operators.movement import Concatenate
from ..loops.expressions import Buffer, Constant
from ..loops.ir import Function, LoopKind, Stmt, loops
from ..schedule.rules.cpu.machine import Machine
from .borders import border
from .decisions import Decisions
from .scope import Scope
from .table import ANCHORS
from .transposed import tile_transposed

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

    def along(self, nest: Sequence[tuple[str, int]], body: Stmt) -> Stmt:
        """Cut into tiles where rows are read across.

        Where an element comes from one of several tensors, the lanes of a block are one vector:
        left to itself, LLVM chooses for each element.
        """
        tiled = tile_transposed(nest, body)
        if tiled is not None:
            return tiled
        joined = any(isinstance(node.operator, Concatenate) for node in self.nodes)
        if joined and len(nest) > 1:
            sizes = {nest[-1][1] * each.dtype.bytes for each in self.outputs.values()}
            if sizes == {self.scope.machine.vector_bytes}:
                return loops(tuple(nest[:-1]), loops((nest[-1],), body, LoopKind.VECTOR))
        return loops(tuple(nest), body)

    def surround(self, buffer: Buffer, pads: Sequence[tuple[int, int]], value: Constant) -> Stmt:
        """In vectors, and for threads."""
        return border(buffer, pads, value, self.scope)
