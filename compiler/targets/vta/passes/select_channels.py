"""Channels picked by weights of 0 and 1.

    Gather(Requantize(Conv2d(x, w)))  ->  Requantize(Conv2d(x, rows of w))
    Conv2d(Gather(x), w)              ->  Conv2d(x, w with its columns in other places)
    Gather(x)                         ->  Requantize(Conv2d(x)), of one pixel

The second form is used only where it takes no more products than a convolution that picks.  Every
step leaves one Gather fewer to be read, so the pass ends.
"""

import numpy as np

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ....graph.ir import Array, Graph, Node
from ....graph.operators.indexing import Gather
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.values import Requantize
from ....graph.rewrite import Rewriter, rewrite
from ..operators import AnyRequantize

__all__ = ["SelectChannels"]

IMAGE = 4
"""Dimensions of an image, batch and channels included."""


@frozen
class SelectChannels:
    """lanes: channels of a block."""

    lanes: int
    name: str = "select_channels"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing is picked."""
        # What picks from one tensor is rewritten in one round: no pick changes another.
        graph = rewrite(graph, (_rows,), reach=0)
        return rewrite(rewrite(graph, (self._columns,)), (_picked,), reach=0)

    def _columns(self, rewriter: Rewriter, node: Node) -> str | None:
        operator = node.operator
        if not isinstance(operator, Conv2d) or operator.groups != 1:
            return None
        gather = rewriter.graph.producer(node.inputs[0])
        places = _places(rewriter, gather)
        if gather is None or places is None or len(set(places.tolist())) < len(places):
            return None
        weights = rewriter.graph.constants[node.inputs[1]]
        outputs, height, width, count = weights.shape
        channels = rewriter.graph.types[gather.inputs[0]].shape[3]
        before, after, made = (-(-size // self.lanes) for size in (channels, count, outputs))
        taps = height * width
        if taps * made * before > after * before + taps * made * after:
            return None
        shape = (outputs, height, width, channels)
        wide = np.full(shape, operator.weight_zero_point, weights.dtype)
        wide[..., places] = weights
        constant = rewriter.builder.constant(f"{node.output}/weights", wide)
        inputs = (gather.inputs[0], constant, node.inputs[2])
        return rewriter.builder.node(operator, inputs, node.output, node.origin)


def _places(rewriter: Rewriter, node: Node | None) -> Array | None:
    """The channels that a node picks of an image; None when it does something else."""
    if node is None or node.operator != Gather(3):
        return None
    kind = rewriter.graph.types[node.inputs[0]]
    if kind.dtype != DType.INT8 or kind.rank != IMAGE or kind.shape[0] != 1:
        return None
    return rewriter.graph.constants.get(node.inputs[1])


def _rows(rewriter: Rewriter, node: Node) -> str | None:
    """Where nothing else reads the convolution's result, and no row is computed twice."""
    places, graph = _places(rewriter, node), rewriter.graph
    if places is None or node.inputs[0] in graph.outputs:
        return None
    finish = graph.producer(node.inputs[0])
    if finish is None or not isinstance(finish.operator, AnyRequantize):
        return None
    picked = [_places(rewriter, reader) for reader in graph.consumers(finish.output)]
    total = graph.producer(finish.inputs[0])
    if total is None or not isinstance(total.operator, Conv2d) or total.operator.groups != 1:
        return None
    if len(graph.consumers(total.output)) != 1 or any(each is None for each in picked):
        return None
    scales = [graph.constants[name] for name in finish.inputs[1:]]
    if sum(len(each) for each in picked if each is not None) > len(scales[0]):
        return None
    builder, stem = rewriter.builder, node.output
    weights, bias = (graph.constants[name][places] for name in total.inputs[1:])
    inputs = (
        total.inputs[0],
        builder.constant(f"{stem}/weights", weights),
        builder.constant(f"{stem}/bias", bias),
    )
    partial = builder.node(total.operator, inputs, f"{stem}/sum", total.origin)
    own = [builder.constant(f"{stem}/scale", each[places]) for each in scales]
    return builder.node(finish.operator, (partial, *own), stem, finish.origin)


def _picked(rewriter: Rewriter, node: Node) -> str | None:
    places = _places(rewriter, node)
    if places is None:
        return None
    builder, stem, count = rewriter.builder, node.output, len(places)
    channels = rewriter.graph.types[node.inputs[0]].shape[3]
    inputs = (
        node.inputs[0],
        builder.constant(f"{stem}/weights", np.eye(channels, dtype=np.int8)[places, None, None]),
        builder.constant(f"{stem}/bias", np.zeros(count, np.int32)),
    )
    total = builder.node(Conv2d((1, 1), (0, 0, 0, 0), 1, 0), inputs, f"{stem}/sum", node.origin)
    scale = builder.constant(f"{stem}/scale", np.ones(count, np.float32))
    return builder.node(Requantize(0, -128, 127), (total, scale), stem, node.origin)
