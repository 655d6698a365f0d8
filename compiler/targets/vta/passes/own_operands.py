"""Give both operands of a sum or product a tensor of their own.

    Add(x, y)  ->  Add(x, MaxPool2d(y) of one pixel), x and y parts of one tensor

A layer reads one part of a tensor: where that is loaded, the other part is elsewhere.  A tensor
and itself are one part.  But a convolution reads windows of what it sums, so what is added to its
sums is always a tensor of its own.  Each node is visited once, so the pass ends.
"""

from dovetail.isa.frozen import frozen, replace

from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.assembly import Assemble
from ....graph.operators.integer.residual import RequantizeAdd
from ....graph.operators.movement import Reshape
from ..operators import AnyAdd, AnyMultiply, maker_of_sums
from .own_parts import COPY, is_channel_concatenation, is_channel_slice

__all__ = ["OwnOperands"]


@frozen
class OwnOperands:
    """See the module's docstring."""

    name: str = "own_operands"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when there is nothing to copy."""
        builder = GraphBuilder.over(graph)
        for node in graph.nodes:
            if isinstance(node.operator, AnyAdd | AnyMultiply) and _share(graph, *node.inputs[:2]):
                x, y, *others = node.inputs
                y = builder.node(COPY, (y,), f"{node.output}/operand", node.origin)
                node = replace(node, inputs=(x, y, *others))
            if isinstance(node.operator, RequantizeAdd) and _shares(graph, node):
                x, scale, y = node.inputs
                y = builder.node(COPY, (y,), f"{node.output}/operand", node.origin)
                node = replace(node, inputs=(x, scale, y))
            builder.nodes.append(node)
        return graph if len(builder.nodes) == len(graph.nodes) else builder.build(graph.outputs)


def _shares(graph: Graph, node: Node) -> bool:
    """True if a convolution reads parts of what is added to its sums."""
    maker = maker_of_sums(graph, node)
    if maker is None:
        return False
    return bool(_wholes(graph, maker.inputs[0]) & _wholes(graph, node.inputs[2]))


def _share(graph: Graph, x: str, y: str) -> bool:
    return x != y and bool(_wholes(graph, x) & _wholes(graph, y))


def _wholes(graph: Graph, name: str) -> set[str]:
    """``name`` and all tensors that it is, or may be, part of."""
    found, pending = set[str](), [name]
    while pending:
        each = pending.pop()
        if each in found or each in graph.constants:
            continue
        found.add(each)
        node = graph.producer(each)
        if node is not None and (
            isinstance(node.operator, Reshape) or is_channel_slice(node, graph.types)
        ):
            pending.append(node.inputs[0])
        pending += [
            reader.output
            for reader in graph.consumers(each)
            if isinstance(reader.operator, Assemble)
            or is_channel_concatenation(reader, graph.types[reader.output])
        ]
    return found
