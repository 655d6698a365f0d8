"""Convolutions: on the matrix core, or, one channel at a time, on the vector unit."""

import numpy as np

from ..graph.fuse import Layer
from ..graph.ir import Graph
from ..graph.ops import Conv2d
from .activation import Activation
from .image import Image
from .ir import Buffer, Fold, Kernel, Loop, LoopKind, Product, Ref, Scope, Stage, var
from .stages import Array, LoweredLayer, outer_loops, requantized, window_of, windowed

__all__ = ["lower_conv", "lower_depthwise"]


def lower_conv(graph: Graph, layer: Layer, x: Activation, output: Activation) -> LoweredLayer:
    """Groups, if there are any, fill blocks, and each makes one of them."""
    node = layer.nodes[0]
    operator = node.operator
    assert isinstance(operator, Conv2d)
    weights, bias = (graph.constants[name] for name in node.inputs[1:3])
    if x.image:
        weights = _weights_of_windows(weights, x.image)
    out_channels, kernel_h, kernel_w, _ = weights.shape
    lanes = x.lanes
    # Lanes without a channel have weights that count as 0.
    blocks = x.blocks // operator.groups
    places = x.channel_places if operator.groups == 1 else slice(None)
    shape = (output.blocks * lanes, kernel_h, kernel_w, blocks * lanes)
    padded = np.full(shape, operator.weight_zero_point, np.int8)
    padded[:out_channels, :, :, places] = weights
    tiles = padded.reshape(output.blocks, lanes, kernel_h, kernel_w, blocks, lanes)
    tiles = np.ascontiguousarray(tiles.transpose(0, 4, 2, 3, 1, 5))
    finish, constants = requantized(graph, layer, _folded_bias(weights, bias, operator), output)
    constants["weights"] = tiles
    shape = (output.blocks, output.height, output.width, lanes)
    acc = Buffer("acc", shape, "int32", Scope.ACC)
    place = (var("c"), var("y"), var("x"), var("l"))
    (sy, sx), (top, left, _, _) = operator.strides, operator.pads
    down, across = operator.dilations
    row = var("y") * sy + var("ky") * down + -top
    column = var("x") * sx + var("kx") * across + -left
    if x.image:
        row, column = (column, var("y")) if x.image.transposed else (row, var("x"))
    block = var("k") if operator.groups == 1 else var("c") * blocks + var("k")
    source = x.at(block, row, column, var("i"))
    tile = Ref(
        Buffer("weights", tiles.shape, "int8", Scope.WGT),
        (var("c"), var("k"), var("ky"), var("kx"), var("l"), var("i")),
    )
    inner = (
        Loop("k", blocks),
        Loop("ky", kernel_h),
        Loop("kx", kernel_w),
        Loop("i", lanes, LoopKind.LANE),
    )
    total = Stage(
        "sum",
        (*outer_loops(output), *inner),
        frozenset(loop.name for loop in inner),
        Ref(acc, place),
        Fold.SUM,
        Product(source, tile, -operator.weight_zero_point),
    )
    end = Stage(
        "finish",
        outer_loops(output),
        frozenset(),
        output.at(*place),
        Fold.NONE,
        Ref(acc, place),
        finish,
    )
    macs = output.height * output.width * weights.size
    return LoweredLayer(Kernel(layer.name, (total, end), macs), constants, (x,), output)


def lower_depthwise(graph: Graph, layer: Layer, x: Activation, output: Activation) -> LoweredLayer:
    node = layer.nodes[0]
    operator = node.operator
    assert isinstance(operator, Conv2d)
    weights, bias = (graph.constants[name] for name in node.inputs[1:3])
    _, kernel_h, kernel_w, _ = weights.shape
    # Rows of up to three taps are the last but one of four words, which are read together.
    row, first = (4, 3 - kernel_w) if kernel_w <= 3 else (kernel_w, 0)
    count = -(-kernel_h * row // 4) * 4
    padded = np.full((x.blocks * x.lanes, count), operator.weight_zero_point, np.int8)
    rows = padded[:, : kernel_h * row].reshape(-1, kernel_h, row)
    rows[x.channel_places, :, first : first + kernel_w] = weights[..., 0]
    padded[:, : kernel_h * row] = rows.reshape(len(padded), -1)
    taps = padded.reshape(x.blocks, x.lanes, count).transpose(0, 2, 1)
    finish, constants = requantized(graph, layer, _folded_bias(weights, bias, operator), output)
    constants["taps"] = np.ascontiguousarray(taps)
    place = var("ky") * row + var("kx") + first
    tap = Ref(Buffer("taps", taps.shape, "int8", Scope.TAP), (var("c"), place, var("l")))
    top, left = operator.pads[:2]
    source = window_of(x, operator.strides, (top, left), operator.dilations)
    value = Product(source, tap, -operator.weight_zero_point)
    kernel = (kernel_h, kernel_w)
    return windowed(layer, x, output, kernel, Fold.SUM, value, finish, constants)


def _folded_bias(weights: Array, bias: Array, operator: Conv2d) -> Array:
    """``bias - zero_point * sum(weights)``, one an output channel; wraps as int32 does.

    The weights count less their zero point.
    """
    factors = weights.astype(np.int64) - operator.weight_zero_point
    sums = factors.reshape(len(weights), -1).sum(axis=1)
    return (bias.astype(np.int64) - operator.zero_point * sums).astype(np.int32)


def _weights_of_windows(weights: Array, image: Image) -> Array:
    """OHWI weights with the bytes of a window as channels, in one column or one row."""
    out_channels, height, width, channels = weights.shape
    if image.transposed:
        turned = weights.transpose(0, 2, 1, 3).reshape(out_channels, 1, width, height * channels)
        return np.ascontiguousarray(turned)
    return weights.reshape(out_channels, height, 1, width * channels)
