"""Convolutions as pads and contractions.

    conv(x, w)  ->  contract(pad(x), w)

Each convolution becomes nodes of other kinds, so the pass ends.
"""

import numpy as np

from dovetail.isa.frozen import frozen

from ....graph.ir import Array, Graph, GraphBuilder, Node
from ....graph.operators.contractions import Axis, Contract, Convolution
from ....graph.operators.movement import PadTensor, Reshape, Slice
from ....graph.rebuild import Rebuilding

__all__ = ["ExpandConvolutions", "Pads", "padded"]

Pads = tuple[tuple[int, int], ...]


@frozen
class ExpandConvolutions:
    """See the module's docstring."""

    name: str = "expand_convolutions"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when it has no convolution."""
        if not any(isinstance(node.operator, Convolution) for node in graph.nodes):
            return graph
        rebuilding = Rebuilding(graph)
        for node in graph.nodes:
            if isinstance(node.operator, Convolution):
                x, w = (rebuilding.tensor(name) for name in node.inputs)
                result = _expanded(rebuilding.builder, node, node.operator, x, w)
                rebuilding.replace(node, (result,))
            else:
                rebuilding.copy(node)
        return rebuilding.build()


def padded(
    builder: GraphBuilder, node: Node, x: str, pads: Pads, first: int = 2, fill: Array | None = None
) -> str:
    """Zeros, or ``fill``, around the dimensions from ``first`` on; negative pads cut."""
    shape = builder.types[x].shape
    cuts = [(max(-low, 0), max(-high, 0)) for low, high in pads]
    if any(low or high for low, high in cuts):
        starts, sizes = [0] * len(shape), list(shape)
        for axis, (low, high) in enumerate(cuts, first):
            starts[axis], sizes[axis] = low, shape[axis] - low - high
        cut = Slice(tuple(starts), (1,) * len(shape), tuple(sizes))
        x = builder.node(cut, (x,), f"{x}.cut", node.origin)
    grown = [(max(low, 0), max(high, 0)) for low, high in pads]
    if any(low or high for low, high in grown):
        rest = len(shape) - first - len(pads)
        before = (*(0,) * first, *(low for low, _ in grown), *(0,) * rest)
        after = (*(0,) * first, *(high for _, high in grown), *(0,) * rest)
        if fill is None:
            fill = np.zeros((), builder.types[x].dtype.numpy)
        zero = builder.constant("zero", fill)
        x = builder.node(PadTensor(before, after), (x, zero), f"{x}.padded", node.origin)
    return x


def _spread(builder: GraphBuilder, node: Node, x: str, steps: tuple[int, ...]) -> str:
    """``step - 1`` zeros after each element of the dimensions from 2 on, except for the last."""
    if all(step == 1 for step in steps):
        return x
    shape = builder.types[x].shape
    columns = [each for size in shape[2:] for each in (size, 1)]
    x = builder.node(Reshape((*shape[:2], *columns)), (x,), x, node.origin)
    pads = tuple(each for step in steps for each in ((0, 0), (0, step - 1)))
    x = padded(builder, node, x, pads)
    sizes = [size * step for size, step in zip(shape[2:], steps, strict=True)]
    x = builder.node(Reshape((*shape[:2], *sizes)), (x,), x, node.origin)
    return padded(builder, node, x, tuple((0, 1 - step) for step in steps))


def _expanded(builder: GraphBuilder, node: Node, operator: Convolution, x: str, w: str) -> str:
    """Labels: batch, group, output, positions, channel, taps."""
    rank, groups = len(operator.strides), operator.groups
    x = _spread(builder, node, x, operator.expansions)
    x = padded(builder, node, x, operator.pads)
    x_shape, w_shape = builder.types[x].shape, builder.types[w].shape
    outputs, kernel = w_shape[0] // groups, w_shape[2:]
    positions = tuple(
        (size - (k - 1) * d - 1) // s + 1
        for size, k, d, s in zip(
            x_shape[2:], kernel, operator.dilations, operator.strides, strict=True
        )
    )
    places = tuple(range(3, 3 + rank))
    channel, taps = 3 + rank, tuple(range(4 + rank, 4 + 2 * rank))
    windows: tuple[Axis, ...] = tuple(
        ((place, stride), (tap, dilation))
        for place, stride, tap, dilation in zip(
            places, operator.strides, taps, operator.dilations, strict=True
        )
    )
    contraction = Contract(
        (x_shape[0], groups, outputs, *positions, w_shape[1], *kernel),
        (
            (((0, 1),), ((1, 1),), ((channel, 1),), *windows),
            (((1, 1),), ((2, 1),), ((channel, 1),), *(((tap, 1),) for tap in taps)),
        ),
        tuple(((label, 1),) for label in (0, 1, 2, *places)),
        operator.dtype,
    )
    grouped = Reshape((x_shape[0], groups, x_shape[1] // groups, *x_shape[2:]))
    x = builder.node(grouped, (x,), x, node.origin)
    w = builder.node(Reshape((groups, outputs, *w_shape[1:])), (w,), w, node.origin)
    y = builder.node(contraction, (x, w), node.output, node.origin)
    return builder.node(
        Reshape((x_shape[0], w_shape[0], *positions)), (y,), node.output, node.origin
    )
