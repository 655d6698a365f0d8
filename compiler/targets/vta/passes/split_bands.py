"""Products with a band matrix, in parts that each have a band of their own.

    f(Requantize(Conv2d(x[1, 1, 1, C], w)))  ->  Concatenate(f(...), f(...), f(...)) of rows of w

Lowering leaves out tiles of weights outside a band, but a band may not begin before the first block
or end behind the last.  That of a convolution over channels does both, so its first and last blocks
are layers of their own.  f is a Lookup, or nothing.  Only products that then take less time are
rewritten, and no part can be split again with a gain, so the pass ends.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, Node
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.values import Lookup
from ....graph.operators.movement import Concatenate
from ....graph.rewrite import Rewriter, rewrite
from ..layers.sparse import find_band
from ..operators import AnyRequantize

__all__ = ["SplitBands"]

ENDS = 4
"""Blocks at either end that are looked at as a part."""
LAYER_TILES = 16
"""Tiles of weights that are loaded in the time that one more layer takes."""


@frozen
class SplitBands:
    """lanes: channels of a block."""

    lanes: int
    name: str = "split_bands"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when no band is worth it."""
        # No product changes another, so all are rewritten in one round.
        return rewrite(graph, (self._split,), reach=0)

    def _split(self, rewriter: Rewriter, node: Node) -> str | None:
        graph, builder = rewriter.graph, rewriter.builder
        finish: Node | None = node
        if isinstance(node.operator, Lookup):
            shared = graph.types[node.inputs[1]].rank > 1
            finish = None if shared else rewriter.producer(node.inputs[0])
        elif any(isinstance(each.operator, Lookup) for each in graph.consumers(node.output)):
            return None
        if finish is None or not isinstance(finish.operator, AnyRequantize):
            return None
        total = rewriter.producer(finish.inputs[0])
        if total is None or not isinstance(total.operator, Conv2d):
            return None
        weights = graph.constants[total.inputs[1]]
        pixel = graph.types[total.inputs[0]].shape == (1, 1, 1, weights.shape[-1])
        if not pixel or weights.shape[1:3] != (1, 1) or not self._fills(weights.shape):
            return None
        parts = _parts(self._used(weights[:, 0, 0], total.operator.weight_zero_point))
        if len(parts) == 1:
            return None
        made = list[str]()
        for number, (first, last) in enumerate(parts):
            own, stem = slice(first * self.lanes, last * self.lanes), f"{node.output}/{number}"
            bias, *more = (
                builder.constant(f"{stem}/part", graph.constants[name][own])
                for name in (*total.inputs[2:], *finish.inputs[1:])
            )
            rows = builder.constant(f"{stem}/rows", weights[own])
            sums = (total.inputs[0], rows, bias)
            found = builder.node(total.operator, sums, f"{stem}/sum", total.origin)
            found = builder.node(finish.operator, (found, *more), stem, finish.origin)
            if finish is not node:
                found = builder.node(node.operator, (found, node.inputs[1]), stem, node.origin)
            made.append(found)
        return builder.node(Concatenate(3), tuple(made), node.output, node.origin)

    def _fills(self, shape: tuple[int, ...]) -> bool:
        """True if all channels are in whole blocks."""
        return shape[0] % self.lanes == 0 and shape[-1] % self.lanes == 0

    def _used(self, weights: NDArray[np.int8], zero_point: int) -> NDArray[np.bool_]:
        """Tiles that are not all 0: bool[result blocks, input blocks]."""
        outputs, inputs = (size // self.lanes for size in weights.shape)
        tiles = (weights != zero_point).reshape(outputs, self.lanes, inputs, self.lanes)
        # One dimension after the other takes a seventh of the time.
        return np.asarray(tiles.any(axis=1).any(axis=2))


def _parts(used: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The first block of results of each part, and that behind its last."""
    count = len(used)

    def cost(cuts: list[int]) -> int:
        ends = list(itertools.pairwise(cuts))
        tiles = sum((last - first) * find_band(used[first:last])[1] for first, last in ends)
        return tiles + LAYER_TILES * len(ends)

    some = range(min(ENDS, count // 2) + 1)
    ways = [sorted({0, head, count - tail, count}) for head in some for tail in some]
    best = min(ways, key=cost)
    return list(itertools.pairwise(best))
