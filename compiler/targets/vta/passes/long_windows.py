"""Long windows of a row that the host gives, whose elements between two windows become channels.

    Conv2d(x[1, 1, W, C], w[O, 1, K, C]), strides of s
        ->  Conv2d(Reshape(x)[1, 1, W / s, s * C], w[O, 1, K / s, s * C]), strides of 1

LOAD brings a window that overlaps others by itself, so each element came as often as windows read
it: five times for raw audio with windows of 80 in steps of 16.  Weights of 0 fill the last channels
where s does not divide K.  A convolution is left alone where its products would take more words.
No result has strides, so the pass ends.
"""

import numpy as np

from dovetail.isa.frozen import frozen, replace

from ....graph.ir import Graph, Node
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.movement import Reshape
from ....graph.rewrite import Rewriter, rewrite
from ..capabilities import ON_HOST

__all__ = ["LongWindows"]


@frozen
class LongWindows:
    """lanes: of a block."""

    lanes: int
    name: str = "long_windows"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        return rewrite(graph, (self._fold,))

    def _fold(self, rewriter: Rewriter, node: Node) -> str | None:
        graph, builder, operator = rewriter.graph, rewriter.builder, node.operator
        if not isinstance(operator, Conv2d) or not _is_given(graph, node.inputs[0]):
            return None
        _, height, width, channels = graph.types[node.inputs[0]].shape
        weights, step = graph.constants[node.inputs[1]], operator.strides[1]
        top, left, bottom, _ = operator.pads
        count, rows, length, _ = weights.shape
        if (height, rows, top, bottom) != (1, 1, 0, 0) or step == 1 or operator.groups > 1:
            return None
        if operator.dilations != (1, 1) or width % step or left % step:
            return None
        taps, each = -(-length // step), step * channels
        if taps * self._blocks(each) > self._blocks(length * channels) or taps == 1:
            return None
        right = graph.types[node.output].shape[2] + taps - 1 - (left + width) // step
        if right < 0:
            return None
        wide = np.full((count, 1, taps * step, channels), operator.weight_zero_point, np.int8)
        wide[:, :, :length] = weights
        stem = node.output
        row = Reshape((1, 1, width // step, each))
        inputs = (
            builder.node(row, node.inputs[:1], f"{stem}/steps", node.origin),
            builder.constant(f"{stem}/taps", wide.reshape(count, 1, taps, each)),
            node.inputs[2],
        )
        folded = replace(operator, strides=(1, 1), pads=(0, left // step, 0, right))
        return builder.node(folded, inputs, stem, node.origin)

    def _blocks(self, channels: int) -> int:
        return -(-channels // self.lanes)


def _is_given(graph: Graph, name: str) -> bool:
    """True if the host makes a tensor of an input."""
    while (maker := graph.producer(name)) is not None and isinstance(maker.operator, ON_HOST):
        name = maker.inputs[0]
    return name in graph.inputs
