"""Tables of channels as the vector unit has them.

    Lookup(x, table[C, 256])  ->  Requantize(Conv2d(x)), depthwise, of one tap, where that is exact
    Lookup(x, table[C, 256])  ->  Concatenate(Lookup(Slice(x)), ...), one for a block of channels,
                                  each of which may be such a convolution

TAB holds a table for each lane, so a block of channels may have as many.  What is made has no table
for more channels than a block, so the pass ends.
"""

from dataclasses import dataclass

import numpy as np

from ....graph.ir import Array, Graph, Node
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.values import Lookup, Requantize
from ....graph.operators.movement import Concatenate, Reshape, Slice
from ....graph.rewrite import Rewriter, rewrite
from .affine import find_affine

__all__ = ["ChannelTables"]


@dataclass(frozen=True, slots=True)
class ChannelTables:
    """lanes: channels of a block."""

    lanes: int
    name: str = "channel_tables"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        return rewrite(graph, (self._rewrite,))

    def _rewrite(self, rewriter: Rewriter, node: Node) -> str | None:
        if not isinstance(node.operator, Lookup):
            return None
        table = rewriter.graph.constants[node.inputs[1]]
        if table.ndim == 1:
            return None
        shape = rewriter.graph.types[node.output].shape
        if len(shape) != 4:
            return _as_image(rewriter, node) if set(shape[:-1]) <= {1} else None
        if shape[0] != 1:
            return None
        return _affine(rewriter, node, table) or self._split(rewriter, node, table)

    def _split(self, rewriter: Rewriter, node: Node, table: Array) -> str | None:
        if len(table) <= self.lanes:
            return None
        builder, shape = rewriter.builder, rewriter.graph.types[node.output].shape
        parts = []
        for first in range(0, len(table), self.lanes):
            rows, stem = table[first : first + self.lanes], f"{node.output}/{first}"
            part = Slice((0, 0, 0, first), (1, 1, 1, 1), (*shape[:3], len(rows)))
            x = builder.node(part, node.inputs[:1], f"{stem}/x", node.origin)
            constant = builder.constant(f"{stem}/table", rows.copy())
            parts.append(builder.node(Lookup(), (x, constant), stem, node.origin))
        return builder.node(Concatenate(3), tuple(parts), node.output, node.origin)


def _as_image(rewriter: Rewriter, node: Node) -> str:
    """The same of an image of one pixel."""
    builder, shape = rewriter.builder, rewriter.graph.types[node.output].shape
    pixel = Reshape((1, 1, 1, shape[-1]))
    x = builder.node(pixel, node.inputs[:1], f"{node.output}/x", node.origin)
    y = builder.node(node.operator, (x, node.inputs[1]), f"{node.output}/y", node.origin)
    return builder.node(Reshape(shape), (y,), node.output, node.origin)


def _affine(rewriter: Rewriter, node: Node, table: Array) -> str | None:
    form = find_affine(np.asarray(table, np.int8))
    if form is None:
        return None
    builder, stem, channels = rewriter.builder, node.output, len(table)
    inputs = (
        node.inputs[0],
        builder.constant(f"{stem}/weights", form.taps.reshape(channels, 1, 1, 1)),
        builder.constant(f"{stem}/bias", form.biases),
    )
    total = builder.node(
        Conv2d((1, 1), (0, 0, 0, 0), channels, 0), inputs, f"{stem}/sum", node.origin
    )
    scale = builder.constant(f"{stem}/scale", form.scales)
    return builder.node(Requantize(0, form.low, form.high), (total, scale), stem, node.origin)
