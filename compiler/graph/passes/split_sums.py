"""Long sums of products with few results, in parts that a GPU computes at a time.

    y[m, n] = sum(x[m, k] * w[k, n])  ->  p[s, m, n] = sum(x[m, s * K + k] * w[s * K + k, n])
                                          y[m, n] = sum(p[s, m, n])

The results alone would not fill the machine with blocks.  What follows the product follows the
second sum, in the same kernel.  Parts are multiples of ``STEP`` elements, the most that a block of
threads copies at a time, so rows stay aligned.

A product whose sums are split has too few elements in a part to be split again, or enough blocks,
so the pass ends.
"""

from dataclasses import dataclass
from math import prod

from ..emitter import Emitter
from ..formulas import Term
from ..ir import Graph, Node
from ..operators.contractions import Contract
from ..rebuild import Rebuilding

__all__ = ["SplitSums"]

BLOCKS = 132
"""A large GPU runs so many at a time."""
SIDE = 32
"""Rows and columns of the blocks' tiles that are counted."""
STEP, LEAST = 64, 256
"""A part is a multiple of the first, and at least the second."""
FEW = 1 << 11
"""As many results of a few rows have a block each, whose threads share the sum."""
PARTS = (16, 8, 4, 2)


@dataclass(frozen=True, slots=True)
class SplitSums:
    """See the module's docstring."""

    name: str = "split_sums"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        found = {node.output: parts for node in graph.nodes if (parts := _parts(graph, node)) > 1}
        if not found:
            return graph
        rebuilding = Rebuilding(graph)
        emitter = Emitter(rebuilding.builder)
        for node in graph.nodes:
            if node.output not in found:
                rebuilding.copy(node)
                continue
            assert isinstance(node.operator, Contract)
            emitter.origin = node.origin
            operands = (emitter.tensor(rebuilding.tensor(name)) for name in node.inputs)
            split = _split(node.operator, found[node.output])
            total = Term(emitter, emitter.emit(split, *operands)).sum(0)
            rebuilding.replace(node, (total.tensor.name,))
        return rebuilding.build()


def _parts(graph: Graph, node: Node) -> int:
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
    sides = [prod(operator.sizes[each] for each in labels) for labels in (rows, columns)]
    shared = prod(operator.sizes[each] for each in own[0] & own[1] - {label})
    if prod(sides) * shared <= FEW and min(sides) < SIDE // 2:
        return 1
    blocks = shared * prod(-(-side // SIDE) for side in sides)
    length = operator.sizes[label]
    for parts in PARTS:
        if parts * blocks <= BLOCKS and length % (parts * STEP) == 0 and length >= parts * LEAST:
            return parts
    return 1


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
