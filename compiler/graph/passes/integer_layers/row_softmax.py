"""Softmax in integers where products are made of its result, as in attention and detectors.

    RowProducts(Softmax(x), y)  ->  RowProducts(RowSoftmax(x), y), perhaps with movements between
    Conv2d(Softmax(x), w, b)    ->  Conv2d(RowSoftmax(x), w, b), likewise

Which ones these are is decided here alone: all targets compute what this leaves.  Every other
Softmax, such as that at the end of a classifier, keeps ONNX Runtime's table of floats.
"""

from dataclasses import replace

from ...ir import Graph, Node
from ...operators.integer.products import Conv2d, RowProducts
from ...operators.integer.softmax import MOST_ROW, RowSoftmax
from ...operators.integer.values import Softmax
from ...operators.movement import Reshape, Slice, Transpose

__all__ = ["softmax_in_integers"]

MOVES = (Reshape, Slice, Transpose)


def softmax_in_integers(graph: Graph) -> Graph:
    """``graph`` with such softmaxes in integers; each node is looked at once."""
    factors: set[str] = set()
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        moves = isinstance(node.operator, MOVES) and node.outputs[0] in factors
        if isinstance(node.operator, Conv2d | RowProducts) or moves:
            factors.update(node.inputs)
        operator = node.operator
        short = graph.types[node.outputs[0]].shape[-1:] <= (MOST_ROW,)
        if isinstance(operator, Softmax) and node.output in factors and short:
            fixed = RowSoftmax(operator.x_scale, operator.scale, operator.zero_point)
            node = replace(node, operator=fixed)
        nodes.append(node)
    return replace(graph, nodes=tuple(reversed(nodes)))
