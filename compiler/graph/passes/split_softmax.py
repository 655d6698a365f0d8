"""Softmax of rows as reductions, where several threads for a row are better than one.

    softmax(x)  ->  e = exp(x - max(x)); e * (1 / sum(e))

A thread that computes a row alone takes the longer the longer the row is.  In reductions the
threads of a block share a row, and between them every element has a thread.
"""

from dovetail.isa.frozen import frozen

from ..formulas import Term
from ..ir import Graph, Node
from ..operators.rows import SoftmaxRows
from ..rebuild import Terms, with_formulas

__all__ = ["SplitSoftmax"]

LEAST = 64
"""Elements of a row at least; one thread soon goes through a shorter one."""


@frozen
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
