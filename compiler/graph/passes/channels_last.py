"""Convolutions of images with their channels last, for copies of 16 bytes at a time.

    Convolution(x, w)        ->  Transpose(PixelConvolution(Transpose(x), w, its channels last))
    f(Transpose(x), y)       ->  Transpose(f(x, y turned back)), f an operator that can do so
    Transpose(Transpose(x))  ->  one Transpose, or x

Channels are widened to a multiple of 16 bytes, by zeros.  The transposes behind convolutions move
towards the outputs and meet those of the next ones.  The first pattern leaves no convolution, the
second moves a transpose one node nearer to the outputs, the third removes a node; so the pass ends.
"""

from dataclasses import replace

import numpy as np

from dovetail.isa.frozen import frozen

from ..ir import Graph, Node
from ..operators.contractions import Convolution, PixelConvolution
from ..operators.movement import PadMode, PadTensor, Transpose
from ..operators.windows import WindowReduce
from ..rewrite import Rewriter, rewrite
from .channels_first import merge_transposes, sink_below_elementwise, sink_below_movement

__all__ = ["ChannelsLast"]

FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)
"""The order of dimensions with channels first, of those with channels last; and the reverse."""
COPIED_BYTES = 16
LEAST = 16
"""Pixels, channels and taps of a convolution that is worth it, as a product of matrices is."""


@frozen
class ChannelsLast:
    """See the module's docstring.  It changes graphs with a convolution of floats of 16 bits, or of
    bytes, that is a product of matrices.
    """

    name: str = "channels_last"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        if not any(_is_product(graph, node) for node in graph.nodes):
            return graph
        graph = rewrite(graph, (_turned,), reach=0)
        moving = (merge_transposes, sink_below_elementwise, _sink_below_windows)
        return rewrite(graph, (*moving, sink_below_movement))


def _is_product(graph: Graph, node: Node) -> bool:
    """True if a convolution has enough pixels, channels and taps to be a product of matrices."""
    if not _is_known(graph, node):
        return False
    assert isinstance(node.operator, Convolution)
    channels, *taps = graph.types[node.inputs[1]].shape
    batch, _, *places = graph.types[node.output].shape
    sizes = channels, int(np.prod(taps)), batch * int(np.prod(places))
    return node.operator.groups == 1 and min(sizes) >= LEAST


def _is_known(graph: Graph, node: Node) -> bool:
    """True if a convolution has images, constant weights, and types that tensor cores multiply."""
    if not isinstance(node.operator, Convolution) or node.inputs[1] not in graph.constants:
        return False
    kinds = [graph.types[name] for name in node.inputs]
    narrow = all(each.dtype.bytes < 4 for each in kinds)
    return narrow and kinds[0].rank == 4 and 0 not in graph.types[node.output].shape


def _turned(rewriter: Rewriter, node: Node) -> str | None:
    graph, builder = rewriter.graph, rewriter.builder
    if not _is_known(graph, node):
        return None
    operator = node.operator
    assert isinstance(operator, Convolution)
    x, name = node.inputs
    weights = graph.constants[name].transpose(LAST)
    pixels = builder.node(Transpose(LAST), (x,), f"{x}/pixels", node.origin)
    kind = graph.types[x]
    more = -kind.shape[1] % (COPIED_BYTES // kind.dtype.bytes)
    if more and operator.groups == 1:
        nought = builder.constant(f"{x}/nought", np.zeros((), kind.dtype.numpy))
        wider = PadTensor((0, 0, 0, 0), (0, 0, 0, more), PadMode.CONSTANT)
        pixels = builder.node(wider, (pixels, nought), f"{x}/wider", node.origin)
        weights = np.pad(weights, ((0, 0), (0, 0), (0, 0), (0, more)))
    turned = builder.constant(f"{name}/pixels", np.ascontiguousarray(weights))
    made = builder.node(
        PixelConvolution(operator), (pixels, turned), f"{node.output}/pixels", node.origin
    )
    return builder.node(Transpose(FIRST), (made,), node.output, node.origin)


def _sink_below_windows(rewriter: Rewriter, node: Node) -> str | None:
    operator = node.operator
    before = rewriter.graph.producer(node.inputs[0]) if node.inputs else None
    if not isinstance(operator, WindowReduce) or before is None:
        return None
    if before.operator != Transpose(FIRST):
        return None
    axes = tuple(FIRST[axis] for axis in operator.axes)
    if list(axes) != sorted(axes):
        return None
    own = replace(operator, axes=axes)
    made = rewriter.builder.node(own, before.inputs, f"{node.output}/pixels", node.origin)
    return rewriter.builder.node(Transpose(FIRST), (made,), node.output, node.origin)
