"""Softmax of rows as reductions, where threads that share a row are better than one for each.

    softmax(x)  ->  e = exp(x - max(x)); e * (1 / sum(e))

A thread that has a row alone takes as long as the row is.  As reductions, the threads of a block
share each, and all elements between have a thread.
"""

from dataclasses import dataclass

from ..formulas import Term
from ..ir import Graph, Node
from ..operators.rows import SoftmaxRows
from ..rebuild import Terms, with_formulas

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
            node.output: node.operator
            for node in graph.nodes
            if isinstance(node.operator, SoftmaxRows)
            and graph.types[node.output].shape[-1] >= LEAST
        }
        return with_formulas(graph, found, _formula)


def _formula(node: Node, operator: SoftmaxRows, term: Terms) -> Term:
    x = term(node.inputs[0])
    shifted = x - x.max(-1, keep=True)
    weights = shifted.exp()
    total = weights.sum(-1, keep=True)
    return shifted - total.log() if operator.logarithm else weights * (1 / total)
