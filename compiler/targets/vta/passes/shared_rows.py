"""Rows of all heads by one layer, where products of two tensors read some rows of some channels.

    Lookup(rows of x, table), Lookup(other rows of x, table), ...
        ->  rows of Lookup(x, table), other rows of the same
    rows of channels of x, the same rows of other channels, ...
        ->  channels of the rows, other channels of the same

Rows are a head's, in one window or phase of many; each was a layer of its own.  First operands of
products are read where they lie (``fuse``), and so are left out.  A layer takes the
place of several only where it makes as much as these together, so no cycle is lost.  Each step
leaves fewer layers, so the pass ends.
"""

from collections.abc import Hashable

from dovetail.isa.frozen import frozen, replace

from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.integer.products import RowProducts
from ....graph.operators.integer.values import Lookup
from ....graph.operators.movement import Slice
from ....graph.passes.eliminate_dead import EliminateDead
from .own_parts import is_channel_slice, is_copy, is_operand

__all__ = ["SharedRows"]


@frozen
class _Rows:
    """Rows of some channels of ``x``: the node that copies them, and perhaps one that looks them
    up.
    """

    copy: Node
    lookup: Node | None
    x: str
    first: int
    count: int

    @property
    def last(self) -> Node:
        """The node that makes them."""
        return self.lookup or self.copy

    @property
    def key(self) -> Hashable:
        """Equal for what one layer may make: rows of one table, or the same rows."""
        return self.x, self.lookup.inputs[1] if self.lookup else self.copy.operator


@frozen
class SharedRows:
    """See the module's docstring."""

    name: str = "shared_rows"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when no rows are shared."""
        return _shared(_shared(graph, tables=True), tables=False)


def _shared(graph: Graph, *, tables: bool) -> Graph:
    """The graph in which rows that have one table, or the same rows without, are parts of one
    tensor.
    """
    groups: dict[Hashable, list[_Rows]] = {}
    for node in graph.nodes:
        rows = _rows(graph, node)
        if rows is not None and (rows.lookup is not None) == tables:
            groups.setdefault(rows.key, []).append(rows)
    group_of = {
        rows.last.output: group
        for group in groups.values()
        for rows in group
        if len(group) > 1 and _is_filled(graph, group)
    }
    if not group_of:
        return graph
    builder, wholes = GraphBuilder.over(graph), dict[Hashable, str]()
    for node in graph.nodes:
        group = group_of.get(node.output)
        if group is None:
            builder.nodes.append(node)
            continue
        rows = next(each for each in group if each.last is node)
        start = min(each.first for each in group)
        if rows.key not in wholes:
            end = max(each.first + each.count for each in group)
            x = _channels(builder, rows.x, start, end - start, node)
            wholes[rows.key] = builder.node(
                node.operator, (x, *node.inputs[1:]), f"{node.output}/all", node.origin
            )
        part = _channels(builder, wholes[rows.key], rows.first - start, rows.count, node)
        last = replace(rows.copy, inputs=(part,)) if tables else builder.nodes.pop()
        builder.nodes.append(replace(last, output=node.output))
    return EliminateDead().run(builder.build(graph.outputs))


def _rows(graph: Graph, node: Node) -> _Rows | None:
    """The rows that ``node`` makes for products of two tensors alone; None if it does not."""
    readers = graph.consumers(node.output)
    products = all(isinstance(each.operator, RowProducts) for each in readers)
    if not readers or not products or node.output in graph.outputs or is_operand(graph, node):
        return None
    lookup = node if isinstance(node.operator, Lookup) else None
    copy = graph.producer(node.inputs[0]) if lookup else node
    if copy is None or not is_copy(copy) or (lookup and graph.types[lookup.inputs[1]].rank > 1):
        return None
    x = copy.inputs[0]
    count, part = graph.types[x].shape[3], graph.producer(x)
    if part is None or not is_channel_slice(part, graph.types):
        return None
    assert isinstance(part.operator, Slice)
    return _Rows(copy, lookup, part.inputs[0], part.operator.starts[3], count)


def _is_filled(graph: Graph, group: list[_Rows]) -> bool:
    """True if parts have as many elements together as the least tensor that all are part of."""
    first = group[0]
    _, height, width, _ = graph.types[first.x if first.lookup else first.copy.output].shape
    ends = (each.first + each.count for each in group)
    channels = max(ends) - min(each.first for each in group)
    elements = sum(graph.types[each.last.output].elements for each in group)
    return elements == height * width * channels


def _channels(builder: GraphBuilder, x: str, first: int, count: int, node: Node) -> str:
    """Some channels of an image."""
    shape = builder.types[x].shape
    part = Slice((0, 0, 0, first), (1, 1, 1, 1), (*shape[:3], count))
    return builder.node(part, (x,), f"{node.output}/channels", node.origin)
