"""Products of the rows of two activations: the second one's rows are weights of the matrix core.

``B`` consecutive pixels of one channel block, as they are in DRAM, are one word of WGT: ``B``
output lanes of ``B`` input lanes.  So nothing is transposed, and results have a channel for each
pixel of the second activation.
"""

import numpy as np

from ....graph.ir import Graph
from ....graph.operators.integer.products import Conv2d, RowProducts
from ....graph.operators.integer.values import Requantize
from ....loops.expressions import Expr, Load
from ..passes.fuse import Layer
from ..row_problems import is_softmaxed, must_end_low
from .activation import Activation
from .contraction import sums_of_products
from .definition import Array, Definition, Place, constant_buffer
from .windows import finish_of

__all__ = ["define_row_products"]

LEAST = -(1 << 30)
"""A bias below all that a sum could be, less any."""


def define_row_products(
    graph: Graph, layer: Layer, x: Activation, y: Activation, output: Activation
) -> Definition:
    """Rows of ``x`` go through the matrix core; those of ``y`` stay in it."""
    operator = layer.nodes[0].operator
    assert isinstance(operator, RowProducts)
    lanes = x.lanes
    tiles = np.broadcast_to(np.int8(0), (output.blocks, x.blocks, 1, 1, lanes, lanes))
    plain = Conv2d((1, 1), (0, 0, 0, 0), 1, 0, operator.y_zero_point)
    buffer = constant_buffer("weights", tiles)
    sums = sums_of_products(plain, x, output, buffer, -operator.x_zero_point)

    def total(place: Place) -> Expr:
        return Load(sums.buffer, place.indices)

    node = next(n for n in layer.nodes if isinstance(n.operator, Requantize))
    requantize = node.operator
    assert isinstance(requantize, Requantize)
    scale = np.full((output.blocks, lanes), graph.constants[node.inputs[1]][0], np.float32)
    # Lanes without a channel hold the zero point: they count for nothing in the next product.
    softmaxed, lowered = (f(graph, layer.output) for f in (is_softmaxed, must_end_low))
    if not softmaxed:
        scale.reshape(-1)[output.channels :] = 0
    if scale.all():
        scale = scale[:1]
    bias = np.full(scale.shape, _correction(graph, layer, x), np.int32)
    if lowered and output.channels % lanes:
        # These hold the least byte instead: they are not the largest of a row.
        shape = output.blocks, lanes
        bias, scale = np.broadcast_to(bias, shape).copy(), np.broadcast_to(scale, shape).copy()
        scale.reshape(-1)[output.channels :] = 1
        bias.reshape(-1)[output.channels :] = LEAST
    constants: dict[str, Array] = {"bias": bias, "scale": scale}
    limits = requantize.zero_point, requantize.low, requantize.high
    finish = finish_of(constants, "", *limits)
    macs = x.height * x.width * x.channels * y.height * y.width
    return Definition(total, finish, None, sums, {**constants, "weights": tiles}, macs)


def _correction(graph: Graph, layer: Layer, x: Activation) -> int:
    """The correction of products of lanes without a channel, where the host made both tensors:
    these lanes then hold 0, not the zero points.
    """
    operator, y = layer.nodes[0].operator, layer.inputs[1]
    assert isinstance(operator, RowProducts)
    if graph.producer(y) is not None:
        return 0
    return -operator.x_zero_point * operator.y_zero_point * (-x.channels % x.lanes)
