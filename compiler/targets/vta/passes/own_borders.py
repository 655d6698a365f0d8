"""Give each value that tensors are padded with a tensor of its own.

A tensor on chip has one halo, with one value.  Where readers want several, those of all but one
read a copy:

    Conv2d(x, padded with 3), MaxPool2d(x)  ->  Conv2d(x, padded with 3), MaxPool2d(copy of x)

Each node is visited once, so the pass ends.
"""

from dovetail.isa.frozen import frozen, replace

from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.assembly import Assemble
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.windows import MaxPool2d
from ....graph.operators.movement import Reshape
from .own_parts import COPY, is_channel_concatenation, is_channel_slice

__all__ = ["OwnBorders"]


@frozen
class OwnBorders:
    """See the module's docstring."""

    name: str = "own_borders"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when there is nothing to copy."""
        wholes = _wholes(graph)
        fills: dict[str, int] = {}
        copies: dict[tuple[str, int], str] = {}
        builder = GraphBuilder.over(graph)
        for node in graph.nodes:
            fill = _fill(node)
            if fill is not None:
                x = root = node.inputs[0]
                while root in wholes:
                    root = wholes[root]
                if fills.setdefault(root, fill) != fill:
                    if (x, fill) not in copies:
                        copies[x, fill] = builder.node(COPY, (x,), f"{x}/copy", node.origin)
                    node = replace(node, inputs=(copies[x, fill], *node.inputs[1:]))
            builder.nodes.append(node)
        return builder.build(graph.outputs) if copies else graph


def _fill(node: Node) -> int | None:
    """The value that a node pads with; None if it does not pad."""
    match node.operator:
        case Conv2d(pads=pads, zero_point=zero_point) if any(pads):
            return zero_point
        case MaxPool2d(pads=pads) if any(pads):
            return -128
    return None


def _wholes(graph: Graph) -> dict[str, str]:
    """The tensor that each part, slice or other shape of one is in."""
    found = {}
    for node in graph.nodes:
        joins = is_channel_concatenation(node, graph.types[node.output])
        if joins or isinstance(node.operator, Assemble):
            found.update(dict.fromkeys(node.inputs, node.output))
        elif is_channel_slice(node, graph.types) or isinstance(node.operator, Reshape):
            found[node.output] = node.inputs[0]
    return found
