"""Softmax of rows as reductions, where threads that share a row are better than one for each.

    softmax(x)  ->  e = exp(x - max(x)); e * (1 / sum(e))

A thread that has a row alone takes as long as the row is.  As reductions, the threads of a block
share each, and all elements between have a thread.
"""

from dataclasses import dataclass

from ..emitter import Emitter
from ..formulas import Term
from ..ir import Graph
from ..operators.rows import SoftmaxRows
from ..rebuild import Rebuilding

__all__ = ["SplitSoftmax"]

LEAST = 64
"""Elements of a row; those of shorter ones are soon seen by one thread."""


@dataclass(frozen=True, slots=True)
class SplitSoftmax:
    """See the module's docstring."""

    name: str = "split_softmax"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        found = {
            node.output
            for node in graph.nodes
            if isinstance(node.operator, SoftmaxRows)
            and graph.types[node.output].shape[-1] >= LEAST
        }
        if not found:
            return graph
        rebuilding = Rebuilding(graph)
        emitter = Emitter(rebuilding.builder)
        for node in graph.nodes:
            if not isinstance(node.operator, SoftmaxRows) or node.output not in found:
                rebuilding.copy(node)
                continue
            emitter.origin = node.origin
            x = Term(emitter, emitter.tensor(rebuilding.tensor(node.inputs[0])))
            shifted = x - x.max(-1, keep=True)
            weights = shifted.exp()
            total = weights.sum(-1, keep=True)
            result = shifted - total.log() if node.operator.logarithm else weights * (1 / total)
            rebuilding.replace(node, (result.tensor.name,))
        return rebuilding.build()
