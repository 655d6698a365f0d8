"""Channels that become pixels between two layers, and pixels that become channels, as products.

    Transpose(x[A, B])          ->  Concatenate(U x1^T, U x2^T, ...), x1, x2, ... blocks of channels

The rows of ``x`` are weights as they lie in DRAM, and a product with unit vectors ``U`` is exact,
as in attention.  A matrix of ``B`` channels takes ``A * B * g`` multiply-accumulates in parts of
``g`` channels.  What the host makes or takes, it turns itself.  Each step takes away a Transpose,
or a Reshape that is not to one row, so the pass ends.
"""

from math import prod

import numpy as np

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ....graph.ir import Graph, Node
from ....graph.operators.integer.norm import RowNorm
from ....graph.operators.integer.products import Conv2d, RowProducts
from ....graph.operators.integer.values import Lookup, Requantize
from ....graph.operators.integer.windows import AveragePool2d, MaxPool2d, Upsample2d
from ....graph.operators.movement import Concatenate, Reshape, Slice, Transpose
from ....graph.rewrite import Rewriter, rewrite
from ..operators import AnyAdd, AnyMultiply, AnyRequantize
from .rows_to_pixels import ROWS_TO_PIXELS
from .spread import spread

__all__ = ["ANY", "TurnedRows", "is_longer"]

ANY = 1 << 62
"""Channels of a row that may be normalised, where any number may be."""

MOST_PARTS = 8
"""Layers that one Transpose becomes: more would cost more than the products they save."""
LAYERS = (
    *(AnyAdd, AnyMultiply, AnyRequantize, Conv2d, Lookup),
    *(AveragePool2d, MaxPool2d, RowNorm, Upsample2d),
)


@frozen
class TurnedRows:
    """See the module's docstring.

    lanes: of a block.  longest: channels of a row that is normalised, at most: no layer reads or
    makes longer ones.
    """

    lanes: int
    longest: int = ANY
    name: str = "turned_rows"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        pixels = ROWS_TO_PIXELS.run(graph)
        turned = rewrite(pixels, (self._turn,))
        return graph if turned is pixels else turned

    def _turn(self, rewriter: Rewriter, node: Node) -> str | None:
        graph, builder = rewriter.graph, rewriter.builder
        sizes = _matrix(graph, node)
        if sizes is None or not self._is_between(graph, node, sizes[1]):
            return None
        rows, channels = sizes
        (x,), shape = node.inputs, graph.types[node.output].shape
        image = builder.node(Reshape((1, 1, rows, channels)), (x,), f"{x}/rows", node.origin)
        blocks = -(-channels // self.lanes)
        width = self.lanes * -(-blocks // MOST_PARTS)
        parts = tuple(
            self._part(rewriter, node, image, first, min(first + width, channels))
            for first in range(0, channels, width)
        )
        if len(parts) > 1:
            whole = builder.node(Concatenate(2), parts, f"{node.output}/turned", node.origin)
        else:
            (whole,) = parts
        return builder.node(Reshape(shape), (whole,), node.output, node.origin)

    def _part(self, rewriter: Rewriter, node: Node, image: str, first: int, end: int) -> str:
        """Channels ``first`` to ``end`` of an image [1, 1, A, B], as rows."""
        builder, stem = rewriter.builder, f"{node.output}/{first}"
        _, _, rows, channels = builder.types[image].shape
        part, count = image, end - first
        if count < channels:
            cut = Slice((0, 0, 0, first), (1, 1, 1, 1), (1, 1, rows, count))
            part = builder.node(cut, (image,), f"{stem}/part", node.origin)
        wide = -(-count // self.lanes) * self.lanes
        part = spread(builder, part, wide, 0, node.origin)
        unit = builder.constant(f"{stem}/unit", np.eye(count, wide, dtype=np.int8)[None, None])
        total = builder.node(RowProducts(0, 0), (unit, part), f"{stem}/sum", node.origin)
        scale = builder.constant(f"{stem}/scale", np.ones(rows, np.float32))
        same = Requantize(0, -128, 127)
        return builder.node(same, (total, scale), f"{stem}/turned", node.origin)

    def _is_between(self, graph: Graph, node: Node, channels: int) -> bool:
        """True if a layer makes what ``node`` turns, of so many channels, and layers alone read
        what it makes; where more is moved, elements may come to lie as they did.
        """
        maker = graph.producer(node.inputs[0])
        while maker is not None and isinstance(maker.operator, Reshape):
            maker = graph.producer(maker.inputs[0])
        if maker is None or not self._is_layer(graph, maker):
            return False
        if graph.types[maker.output].shape[-1] != channels:
            return False
        pending, found = [node.output], False
        while pending:
            for reader in graph.consumers(pending.pop()):
                if self._is_layer(graph, reader):
                    found = True
                elif isinstance(reader.operator, Reshape):
                    pending.append(reader.output)
                else:
                    return False
        return found

    def _is_layer(self, graph: Graph, node: Node) -> bool:
        return isinstance(node.operator, LAYERS) and not is_longer(graph, node, self.longest)


def _matrix(graph: Graph, node: Node) -> tuple[int, int] | None:
    """Rows and columns of the matrix that ``node`` turns; None if it does something else."""
    kind, operator = graph.types[node.inputs[0]], node.operator
    if kind.dtype is not DType.INT8 or not isinstance(operator, Transpose):
        return None
    order = [axis for axis in operator.permutation if kind.shape[axis] > 1]
    first = order.index(min(order)) if order else 0
    if not first or order[first:] + order[:first] != sorted(order):
        return None
    rows = prod(kind.shape[axis] for axis in order[first:])
    return rows, kind.elements // rows


def is_longer(graph: Graph, node: Node, longest: int) -> bool:
    """True if a node normalises rows of more channels."""
    return isinstance(node.operator, RowNorm) and graph.types[node.output].shape[-1] > longest
