"""Transposes moved before tables that layers compute, where what comes before moves elements too.

    Transpose(Lookup(x))  ->  Lookup(Transpose(x)), x made by the host or moved, or another table
                              of that

Each step moves a Transpose one node nearer to the input, so the pass ends.
"""

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, Node
from ....graph.operators.indexing import Gather
from ....graph.operators.integer.conversions import Quantize, Shift128
from ....graph.operators.integer.values import Lookup
from ....graph.operators.movement import Reshape, Slice, Transpose
from ....graph.passes.merge_common import MergeCommon
from ....graph.rewrite import Rewriter, rewrite

__all__ = ["RaiseTransposes"]

MOVED = (Quantize, Shift128, Transpose, Reshape, Slice, Gather)


@frozen
class RaiseTransposes:
    """See the module's docstring."""

    name: str = "raise_transposes"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        raised = rewrite(graph, (_raise,))
        return graph if raised is graph else MergeCommon().run(raised)


def _raise(rewriter: Rewriter, node: Node) -> str | None:
    graph = rewriter.graph
    before = graph.producer(node.inputs[0])
    if not isinstance(node.operator, Transpose) or before is None:
        return None
    if not isinstance(before.operator, Lookup) or graph.types[before.inputs[1]].rank > 1:
        return None
    x, table = before.inputs
    maker = graph.producer(x)
    while maker is not None and isinstance(maker.operator, Lookup):
        maker = graph.producer(maker.inputs[0])
    if maker is not None and not isinstance(maker.operator, MOVED):
        return None
    turned = rewriter.builder.node(node.operator, (x,), f"{x}/turned", node.origin)
    return rewriter.builder.node(before.operator, (turned, table), node.output, before.origin)
