"""Keys and values that several heads of queries share (grouped queries: J. Ainslie et al., "GQA",
2023), which exporters write as heads picked again and again.

    Transpose(Gather(x, heads))  ->  Gather(Transpose(x), heads), rows and columns exchanged

Products of two tensors then read each head where it is (``split_products``), and none is copied.
"""

from math import prod

from ....graph.ir import Graph, Node
from ....graph.operators.indexing import Gather
from ....graph.operators.movement import Reshape, Transpose
from ....graph.rewrite import Rewriter, Rewriting

__all__ = ["SHARED_HEADS", "picked"]


def picked(graph: Graph, name: str) -> Node | None:
    """The Gather by constants whose matrices are those of ``name``, one for each of its heads."""
    node = graph.producer(name)
    while node is not None and isinstance(node.operator, Reshape):
        before, after = (graph.types[each].shape for each in (node.inputs[0], node.output))
        if before[-2:] != after[-2:]:
            return None
        node = graph.producer(node.inputs[0])
    if node is None or not isinstance(node.operator, Gather):
        return None
    x, indices = node.inputs
    shape, axis, heads = graph.types[x].shape, node.operator.axis, graph.constants.get(indices)
    if heads is None or axis != len(shape) - 3 or prod(shape[:axis]) > 1:
        return None
    return node if heads.ndim == 1 and set(heads.tolist()) <= set(range(shape[axis])) else None


def _turn(rewriter: Rewriter, node: Node) -> str | None:
    builder, graph = rewriter.builder, rewriter.graph
    gather = picked(graph, node.inputs[0]) if isinstance(node.operator, Transpose) else None
    if gather is None or node.operator != _exchange(graph.types[node.output].rank):
        return None
    x, indices = gather.inputs
    turned = builder.node(_exchange(graph.types[x].rank), (x,), f"{x}/turned", node.origin)
    heads = builder.node(gather.operator, (turned, indices), node.output, node.origin)
    shape = graph.types[node.output].shape
    if builder.types[heads].shape == shape:
        return heads
    return builder.node(Reshape(shape), (heads,), node.output, node.origin)


def _exchange(rank: int) -> Transpose:
    """Rows become columns."""
    return Transpose((*range(rank - 2), rank - 1, rank - 2))


SHARED_HEADS = Rewriting("shared_heads", (_turn,))
