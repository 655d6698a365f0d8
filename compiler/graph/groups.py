"""Groups of nodes that become one loop nest: producers join the group of their consumers.

Every group has one result, that of its last node, and at most one anchor: a node with loops of its
own (a reduction, a contraction, ...).  Going from the last node to the first, a node joins a group
when all its consumers are in it and

- it works element by element or moves elements, and what reads it there may compute it in place;
- or it is an anchor, the group has none, and all that depends on it works element by element on
  its shape.

A contraction, or windows, may also end in a padding with a constant: the results are written inside
the border, as those of any group that ends so.
Before a contraction only a part of a tensor of bytes joins, which is read in place.
Nothing joins a reshape that is a group of its own: it costs nothing.
What ends the epilogue of a contraction that cannot join, in a smaller type, stays with that: it
then writes less.

As all consumers are inside, no path leaves a group and comes back: groups are never in a cycle.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from .ir import Graph, Node
from .operators.elementwise import Binary, BinaryFunction, Unary, UnaryFunction
from .operators.movement import Concatenate, PadMode, PadTensor, Reshape, Slice
from .operators.protocol import Fusion
from .operators.windows import WindowReduce

__all__ = ["group_nodes", "is_border"]

LARGEST_GROUP = 48
"""Nodes; it bounds the code of one loop nest."""

REPEATS = 2
"""A node that costs much is not computed again for each of more consumers' elements than this."""

CHEAP_UNARY = frozenset({UnaryFunction.NEG, UnaryFunction.ABS, UnaryFunction.NOT})
COSTLY_BINARY = frozenset(
    {BinaryFunction.DIV, BinaryFunction.MOD, BinaryFunction.REM, BinaryFunction.POW}
)


@dataclass(slots=True)
class _Group:
    nodes: list[Node] = field(default_factory=list)
    anchor: Node | None = None
    guarded: bool = False
    """True if a node reads its operands under a condition, so that values are not shared."""


def group_nodes(graph: Graph) -> tuple[tuple[Node, ...], ...]:
    """The groups, in an order in which they can run; each in the order of the graph."""
    outputs = set(graph.outputs)
    chosen: dict[int, _Group] = {}
    order: list[_Group] = []
    for node in reversed(graph.nodes):
        group = None
        if len(node.outputs) == 1 and node.output not in outputs:
            readers = graph.consumers(node.output)
            groups = {id(chosen[id(each)]): chosen[id(each)] for each in readers}
            if len(groups) == 1:
                (candidate,) = groups.values()
                apart = candidate.anchor is not None and _narrows(graph, node)
                if not apart and _may_join(graph, node, candidate, readers):
                    group = candidate
        if group is None:
            group = _Group()
            order.append(group)
        group.nodes.append(node)
        if _fusion(node) not in (Fusion.ELEMENTWISE, Fusion.MOVEMENT):
            group.anchor = node
        guarded = isinstance(node.operator, Concatenate | PadTensor)
        last = len(group.nodes) == 1 and is_border(graph, node)
        group.guarded = group.guarded or (guarded and not last)
        chosen[id(node)] = group
    return tuple(tuple(reversed(group.nodes)) for group in reversed(order))


def _fusion(node: Node) -> Fusion:
    return node.operator.fusion


def _may_join(graph: Graph, node: Node, group: _Group, readers: Sequence[Node]) -> bool:
    if len(group.nodes) >= LARGEST_GROUP or _is_name(group):
        return False
    kind = _fusion(node)
    if kind is Fusion.OPAQUE or any(_fusion(each) is Fusion.OPAQUE for each in readers):
        return False
    if kind in (Fusion.REDUCTION, Fusion.CONTRACTION):
        return group.anchor is None and _only_elementwise(graph, node, group, kind)
    if group.anchor is not None:
        before = any(each is group.anchor for each in readers) or any(
            _leads_to(each, group) for each in readers
        )
        if before and _fusion(group.anchor) is not Fusion.REDUCTION:
            return _is_part_of_bytes(graph, node)
        if before and any(_depends(each, group) for each in readers):
            return False
    return _worth_repeating(graph, node, group, readers)


def _is_name(group: _Group) -> bool:
    """True if it is only another shape for the same memory."""
    return all(isinstance(each.operator, Reshape) for each in group.nodes)


def _is_part_of_bytes(graph: Graph, node: Node) -> bool:
    """True if dot products may read the result of ``node`` in place."""
    return (
        isinstance(node.operator, Slice)
        and set(node.operator.steps) == {1}
        and graph.types[node.output].dtype.bytes == 1
    )


def _narrows(graph: Graph, node: Node) -> bool:
    """True if ``node`` ends an epilogue of a contraction, of fewer bytes than the contraction's."""
    kind = graph.types[node.output]
    while _fusion(node) is Fusion.ELEMENTWISE:
        before = [
            made
            for name in node.inputs
            if (made := graph.producer(name)) and graph.types[name].shape == kind.shape
        ]
        if len(before) != 1:
            return False
        (node,) = before
    last = graph.types[node.outputs[0]].dtype
    return _fusion(node) is Fusion.CONTRACTION and last.bytes > kind.dtype.bytes


def _only_elementwise(graph: Graph, node: Node, group: _Group, kind: Fusion) -> bool:
    """True if everything in the group that depends on ``node`` is elementwise on its shape, except
    for a border around the results of a contraction or of windows.
    """
    shape, last = graph.types[node.output].shape, group.nodes[0]
    reached = {node.output}
    for each in reversed(group.nodes):
        if not reached.intersection(each.inputs):
            continue
        borders = kind is Fusion.CONTRACTION or isinstance(node.operator, WindowReduce)
        if each is last and borders and is_border(graph, each):
            return graph.types[each.inputs[0]].shape == shape
        if _fusion(each) is not Fusion.ELEMENTWISE or graph.types[each.output].shape != shape:
            return False
        reached.add(each.output)
    return last.output in reached


def is_border(graph: Graph, node: Node) -> bool:
    """True if a node puts a constant around its first operand."""
    operator = node.operator
    if not isinstance(operator, PadTensor) or operator.mode is not PadMode.CONSTANT:
        return False
    value = graph.constants.get(node.inputs[1])
    inside = min((*operator.before, *operator.after), default=0) >= 0
    return value is not None and value.size == 1 and inside


def _leads_to(node: Node, group: _Group) -> bool:
    """True if the group's anchor depends on ``node``."""
    assert group.anchor is not None
    reached = {node.output}
    for each in reversed(group.nodes):
        if reached.intersection(each.inputs):
            if each is group.anchor:
                return True
            reached.add(each.output)
    return node is group.anchor


def _depends(node: Node, group: _Group) -> bool:
    """True if ``node`` depends on the group's anchor."""
    assert group.anchor is not None
    reached = {group.anchor.output}
    for each in reversed(group.nodes):
        if reached.intersection(each.inputs):
            reached.add(each.output)
    return node.output in reached and node is not group.anchor


def _worth_repeating(graph: Graph, node: Node, group: _Group, readers: Sequence[Node]) -> bool:
    shared = len(readers) > 1 or any(each.inputs.count(node.output) > 1 for each in readers)
    if shared and (group.guarded or any(_fusion(each) is Fusion.MOVEMENT for each in readers)):
        return not node.inputs
    elements = max(1, graph.types[node.output].elements)
    largest = max(graph.types[each.output].elements for each in readers)
    return largest <= REPEATS * elements or not _is_costly(node)


def _is_costly(node: Node) -> bool:
    match node.operator:
        case Unary(function=function):
            return function not in CHEAP_UNARY
        case Binary(function=function):
            return function in COSTLY_BINARY
        case _:
            return False
