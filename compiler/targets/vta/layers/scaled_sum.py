"""Sums of a convolution's results, each times a factor that the host gives for each run.

    acc[term, c] = sum of products
    wide[term, c] = rint((acc[term, c] + row_bias) * row_scale)         20 bits, behind acc
    y[c] = clip(rint((sum over terms of wide[term, c] + bias) * scale) + zero_point)

for blocks ``c`` of channels, and all their pixels and lanes; each pixel has factors of its own.  A
single block that comes again for each block of the result is ``acc[term]``.
``row_bias`` and ``row_scale`` are words of PAR that are in DRAM as the host puts them there; biases
are 0.  A term's blocks of channels come one after the other, then those of the next.
"""

import numpy as np

from dovetail.isa.frozen import replace

from ....dtypes import DType
from ....graph.ir import Graph
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.scaled_sum import FRACTION_BITS, ScaledSum
from ....loops.expressions import BinaryFunction, Buffer, Constant, Load, Scope, Variable
from ....loops.ir import Allocate, Function, Store, Update, block, loops
from ..finishes import requantized
from ..passes.fuse import Layer
from ..row_finishes import widened
from .activation import Activation
from .contraction import sums_of_products
from .definition import Array, LoweredLayer, constant_buffer, nest, place_of
from .row_norm import WIDE

__all__ = ["lower_scaled_sum"]


def lower_scaled_sum(
    graph: Graph, layer: Layer, x: Activation, given: Activation, output: Activation
) -> LoweredLayer:
    """The loop program of a convolution of single pixels and its scaled sum.

    given: the words of its factors.
    """
    conv, operator = layer.nodes[0].operator, layer.nodes[-1].operator
    assert isinstance(conv, Conv2d)
    assert isinstance(operator, ScaledSum)
    weights, lanes = graph.constants[layer.nodes[0].inputs[1]], x.lanes
    terms, repeats = operator.terms, operator.repeats
    every, blocks = terms * output.blocks, output.blocks // repeats
    pixels = output.height * output.width
    assert repeats == 1 or blocks == 1
    padded = np.full((terms * blocks * lanes, x.blocks * lanes), conv.weight_zero_point, np.int8)
    padded[:, x.channel_places] = weights[:, 0, 0]
    tiles = padded.reshape(terms * blocks, lanes, x.blocks, lanes).transpose(0, 2, 1, 3)
    constants: dict[str, Array] = {
        "row_bias": np.zeros((every * pixels, lanes), np.int32),
        "row_scale": np.zeros((every * pixels, lanes), np.float32),
        "bias": np.zeros((1, lanes), np.int32),
        "scale": np.full((1, lanes), 2.0**-FRACTION_BITS, np.float32),
        "weights": np.ascontiguousarray(tiles[:, :, None, None]),
    }
    buffers = {key: constant_buffer(key, array) for key, array in constants.items()}
    made = replace(output, channels=terms * blocks * lanes)
    # Inputs are taken less their zero point, so that no bias has to do it.
    sums = sums_of_products(conv, x, made, buffers["weights"], -conv.zero_point)
    size = output.height, output.width, lanes
    wide = Buffer(WIDE, (terms, output.blocks, *size), DType.INT32, Scope.ACC)
    at, one = place_of(f"{WIDE}."), Variable(f"{WIDE}.n")
    word = one * output.blocks + at.c
    _, y, x_, _ = at.indices
    own = (word * output.height + y) * output.width + x_
    move, factor = (Load(buffers[key], (own, at.l)) for key in ("row_bias", "row_scale"))
    source = one if repeats > 1 else word
    term = widened(Load(sums.buffer, (source, *at.indices[1:])), move, factor)
    widen = loops(
        ((f"{WIDE}.n", terms),), nest(output, Store(wide, (one, *at.indices), term), f"{WIDE}.")
    )
    place, number = place_of(), Variable("term")
    total = Buffer("total", (), DType.INT32, Scope.REGISTER)
    element = Load(wide, (number, *place.indices))
    zero = Constant(0, DType.INT64)
    bias, scale = (Load(buffers[key], (zero, place.l)) for key in ("bias", "scale"))
    y = requantized(Load(total, ()), bias, scale, operator.zero_point, -128, 127)
    fold = Allocate(
        total,
        block(
            Store(total, (), Constant(0, DType.INT32)),
            loops((("term", terms),), Update(total, (), BinaryFunction.ADD, element)),
            Store(output.buffer, output.place(*place.indices), y),
        ),
    )
    body = Allocate(wide, block(widen, nest(output, fold)))
    body = Allocate(sums.buffer, block(*sums.statements, body))
    function = Function(layer.name, (x.buffer, *buffers.values()), (output.buffer,), body)
    macs = output.height * output.width * weights.size
    return LoweredLayer(function, constants, (x,), output, macs, given=given)
