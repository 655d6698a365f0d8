"""Long sums of products with few results, in parts that a GPU computes at a time.

    y[m, n] = sum(x[m, k] * w[k, n])  ->  p[s, m, n] = sum(x[m, s * K + k] * w[s * K + k, n])
                                          y[m, n] = sum(p[s, m, n])

The results alone would not fill the machine with blocks.  What follows the product follows the
second sum, in the same kernel.  An estimate of the target says how many parts are fastest.

A product whose sums are split has an axis of two labels, and is not split again, so the pass ends.
"""

from collections.abc import Callable
from math import gcd, prod

from dovetail.isa.frozen import frozen

from ..formulas import Term
from ..ir import Graph, Node
from ..operators.contractions import Contract
from ..rebuild import Terms, with_formulas

__all__ = ["SplitSums"]

SMALLEST = 16
"""Rows and columns, at least: the threads of a block share each sum where there are fewer."""

Parts = Callable[[int, int, int, int, int, int], int]
"""Parts that are fastest for products side by side: their count, rows, columns, the length of sums,
bytes of an operand's element, and elements that divide all rows of operands in memory, or 0.
"""


@frozen
class SplitSums:
    """See the module's docstring."""

    parts: Parts
    name: str = "split_sums"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        found = {
            node.output: parts
            for node in graph.nodes
            if (parts := _parts(graph, node, self.parts)) > 1
        }
        return with_formulas(graph, found, _formula)


def _formula(node: Node, parts: int, term: Terms) -> Term:
    assert isinstance(node.operator, Contract)
    x, w = map(term, node.inputs)
    split = x.context.emit(_split(node.operator, parts), x.tensor, w.tensor)
    return Term(x.context, split).sum(0)


def _parts(graph: Graph, node: Node, parts: Parts) -> int:
    """Into how many parts the sum of a node goes; 1 where it stays."""
    operator = node.operator
    if not isinstance(operator, Contract) or len(node.inputs) != 2 or len(operator.summed) != 1:
        return 1
    if graph.types[node.output].dtype.bytes < 4:
        return 1
    (label,) = operator.summed
    own = [{each for axis in axes for each, _ in axis} for axes in operator.operands]
    alone = all(((label, 1),) in axes for axes in operator.operands)
    if not alone or any(len(axis) != 1 for axis in operator.output):
        return 1
    rows, columns = (own[0] - own[1], own[1] - own[0])
    height, width = (prod(operator.sizes[each] for each in labels) for labels in (rows, columns))
    if min(height, width) < SMALLEST:
        return 1
    shared = prod(operator.sizes[each] for each in own[0] & own[1] - {label})
    length, size = operator.sizes[label], max(graph.types[name].dtype.bytes for name in node.inputs)
    along = all(axes[-1] == ((label, 1),) for axes in operator.operands)
    whole = gcd(length, *(graph.types[name].shape[-1] for name in node.inputs)) if along else 0
    return parts(shared, height, width, length, size, whole)


def _split(operator: Contract, parts: int) -> Contract:
    """The contraction with the parts as the first dimension of its result."""
    (label,) = operator.summed
    size = operator.sizes[label] // parts
    part = len(operator.sizes)
    sizes = [*operator.sizes, parts]
    sizes[label] = size
    operands = tuple(
        tuple(((part, size), (label, 1)) if axis == ((label, 1),) else axis for axis in axes)
        for axes in operator.operands
    )
    return Contract(tuple(sizes), operands, (((part, 1),), *operator.output), operator.dtype)
