"""Convolutions over the channels of one pixel, as in efficient channel attention.

    Requantize(Conv2d(Reshape(x[1, 1, 1, C])))  ->  Reshape(Requantize(Conv2d(x))) of 1x1, whose
                                                    weights are a band matrix
    Lookup(Reshape(x[1, 1, 1, C]))              ->  Reshape(Lookup(x)), except for one pixel's
    Reshape(Reshape(x[1, 1, 1, C]))             ->  x where that is its shape

A layer leaves channels in blocks, and such a convolution reads them as columns.  Tiles of the
matrix that are all 0 are left out later.  The first step takes away a convolution of several
columns, the second moves a Reshape one node nearer to the outputs, the third takes one away; so the
pass ends.
"""

import numpy as np

from dovetail.isa.frozen import replace

from ....graph.ir import Array, Node
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.values import Lookup
from ....graph.operators.integer.windows import AveragePool2d, MaxPool2d
from ....graph.operators.movement import Reshape, Transpose
from ....graph.rewrite import Rewriter, Rewriting
from ..operators import AnyAdd, AnyMultiply, AnyRequantize

__all__ = ["ACROSS_CHANNELS"]

MADE = (AnyAdd, AnyMultiply, AnyRequantize, AveragePool2d, Lookup, MaxPool2d)
"""Operators of layers that leave channels in blocks."""

MOST_WEIGHTS = 1 << 24
"""Elements of a matrix that is looked at for its bands, at most."""


def _convolve(rewriter: Rewriter, node: Node) -> str | None:
    graph, builder = rewriter.graph, rewriter.builder
    total = rewriter.producer(node.inputs[0])
    if not isinstance(node.operator, AnyRequantize) or total is None:
        return None
    operator, shape = total.operator, graph.types[total.inputs[0]].shape
    if not isinstance(operator, Conv2d) or 1 not in shape[1:3] or shape[1:] == (1, 1, shape[3]):
        return None
    x, weights = _pixel(rewriter, total.inputs[0], total.origin), graph.constants[total.inputs[1]]
    if x is None:
        return None
    size, made = graph.types[total.output].shape, graph.types[total.output].elements
    if shape[3] > 1 or made * graph.types[total.inputs[0]].elements > MOST_WEIGHTS:
        return None
    band = builder.constant(f"{node.output}/band", _matrix(operator, weights, shape))
    bias, *parameters = (
        builder.constant(
            f"{node.output}/{number}",
            np.tile(np.broadcast_to(graph.constants[name], size[3:]), made // size[3]),
        )
        for number, name in enumerate((total.inputs[2], *node.inputs[1:]))
    )
    dense = Conv2d((1, 1), (0, 0, 0, 0), 1, operator.zero_point, operator.weight_zero_point)
    sums = builder.node(dense, (x, band, bias), f"{node.output}/sum", total.origin)
    row = builder.node(node.operator, (sums, *parameters), f"{node.output}/row", node.origin)
    return builder.node(Reshape(size), (row,), node.output, node.origin)


def _matrix(operator: Conv2d, weights: Array, shape: tuple[int, ...]) -> Array:
    """Terms of each element of the result, from an image of ``shape``: int8[O, 1, 1, I], the
    weights' zero point where it adds nothing.
    """
    count = int(np.prod(shape))
    plain = replace(operator, zero_point=0, weight_zero_point=0)
    units = np.eye(count, dtype=np.int8).reshape(count, *shape[1:])
    none = np.zeros(len(weights), np.int32)
    values, taken = (
        plain.evaluate((units, each, none))[0].reshape(count, -1).T
        for each in (weights, np.ones_like(weights))
    )
    band = np.where(taken == 0, operator.weight_zero_point, values).astype(np.int8)
    return band[:, None, None, :]


def _look_up(rewriter: Rewriter, node: Node) -> str | None:
    graph, builder = rewriter.graph, rewriter.builder
    if not isinstance(node.operator, Lookup) or graph.types[node.inputs[1]].rank > 1:
        return None
    kind = graph.types[node.output]
    if kind.shape == (1, 1, 1, kind.elements):
        return None  # It is one pixel already.
    if not _moves(graph.producer(node.inputs[0])):
        return None
    x = _pixel(rewriter, node.inputs[0], node.origin)
    if x is None:
        return None
    found = builder.node(node.operator, (x, node.inputs[1]), f"{node.output}/row", node.origin)
    return builder.node(Reshape(graph.types[node.output].shape), (found,), node.output, node.origin)


def _merge(rewriter: Rewriter, node: Node) -> str | None:
    graph, kind = rewriter.graph, rewriter.graph.types[node.output]
    if not _moves(node) or kind.shape != (1, 1, 1, kind.elements):
        return None
    if graph.types[node.inputs[0]].shape != kind.shape and not _moves(
        graph.producer(node.inputs[0])
    ):
        return None  # One Reshape, of what is not a pixel, is all that can be.
    return _pixel(rewriter, node.output, node.origin)


def _pixel(rewriter: Rewriter, name: str, origin: str) -> str | None:
    """The channels of one pixel that a layer makes, where movements give ``name`` their order.

    None where something else is moved, or nothing is.
    """
    graph, moves, source = rewriter.graph, list[Node](), name
    while (node := graph.producer(source)) is not None and _moves(node):
        moves.insert(0, node)
        (source,) = node.inputs
    kind = graph.types[source]
    if not moves or node is None or not isinstance(node.operator, MADE):
        return None
    if kind.elements != kind.shape[-1]:
        return None
    places = np.arange(kind.elements).reshape(kind.shape)
    for move in moves:
        (places,) = move.operator.evaluate((places,))
    if (np.diff(places.reshape(-1)) != 1).any():
        return None
    pixel = (1, 1, 1, kind.elements)
    if kind.shape == pixel:
        return source
    return rewriter.builder.node(Reshape(pixel), (source,), f"{name}/pixel", origin)


def _moves(node: Node | None) -> bool:
    return node is not None and isinstance(node.operator, Reshape | Transpose)


ACROSS_CHANNELS = Rewriting("across_channels", (_convolve, _look_up, _merge))
