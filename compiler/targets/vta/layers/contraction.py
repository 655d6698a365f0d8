"""Convolutions: on the matrix core, or, one channel at a time, on the vector unit."""

import numpy as np

from ....dtypes import DType
from ....graph.ir import Graph
from ....graph.operators.integer.fixed_point import RequantizeFixed
from ....graph.operators.integer.products import Conv2d
from ....loops.expressions import (
    BinaryFunction,
    Buffer,
    Cast,
    Constant,
    Expr,
    Load,
    Scope,
    Variable,
)
from ....loops.ir import Store, Update, loops
from ..passes.fuse import Layer
from .activation import Activation
from .definition import Array, Definition, Fold, Place, Sums, constant_buffer, nest, place_of
from .fixed_sums import folded_bias
from .image import Image
from .sparse import WHOLE, Band, find_band
from .tap_row import GROUPS, TAP_GROUP, WINDOW, cut_row
from .windows import channel_finish, window_of

__all__ = ["define_conv", "define_depthwise", "sums_of_products"]


def define_conv(graph: Graph, layer: Layer, x: Activation, output: Activation) -> Definition:
    """Groups, if there are any, fill blocks, and each makes one of them."""
    node = layer.nodes[0]
    operator = node.operator
    assert isinstance(operator, Conv2d)
    weights, bias = (graph.constants[name] for name in node.inputs[1:3])
    macs = output.height * output.width * _useful(weights, operator.weight_zero_point)
    raised = 0
    if x.image or bias.any() or _is_fixed(layer):
        bias = folded_bias(weights, bias, operator)
    else:
        # The core takes the zero point from the inputs: then there are no biases to be loaded.
        raised = -operator.zero_point
    if x.image:
        weights = _weights_of_windows(weights, x.image, x.lanes, operator.weight_zero_point)
    out_channels, kernel_h, kernel_w, _ = weights.shape
    lanes = x.lanes
    # Lanes without a channel have weights that count as 0.
    blocks = x.blocks // operator.groups
    places = x.channel_places if operator.groups == 1 else slice(None)
    shape = (output.blocks * lanes, kernel_h, kernel_w, blocks * lanes)
    padded = np.full(shape, operator.weight_zero_point, np.int8)
    padded[:out_channels, :, :, places] = weights
    tiles = padded.reshape(output.blocks, lanes, kernel_h, kernel_w, blocks, lanes)
    tiles = tiles.transpose(0, 4, 2, 3, 1, 5)
    band = Band(0, 0 if operator.groups == 1 else blocks)
    if operator.groups == 1 and not x.image:
        counts = tiles != operator.weight_zero_point
        band, blocks = find_band(counts.any((2, 3, 4, 5)))
        if blocks < x.blocks:
            macs = output.height * output.width * int(np.count_nonzero(counts))
            own = band.of(np.arange(output.blocks)[:, None], np.arange(blocks))
            tiles = np.take_along_axis(tiles, own[:, :, None, None, None, None], 1)
    tiles = np.ascontiguousarray(tiles)
    finish, constants = channel_finish(graph, layer, bias, output)
    buffer = constant_buffer("weights", tiles)
    sums = sums_of_products(operator, x, output, buffer, raised, band)

    def total(place: Place) -> Expr:
        return Load(sums.buffer, place.indices)

    return Definition(total, finish, None, sums, {**constants, "weights": tiles}, macs)


def _useful(weights: Array, absent: int) -> int:
    """Number of weights of a convolution, without those between a half of the results and
    one of the inputs that has none other than ``absent``: where pixels of two halves share a word.
    """
    parts = (part for half in np.array_split(weights, 2) for part in np.array_split(half, 2, 3))
    return sum(part.size for part in parts if (part != absent).any())


def _is_fixed(layer: Layer) -> bool:
    """True if its parameters are those of fixed point, none of them 0."""
    return any(isinstance(node.operator, RequantizeFixed) for node in layer.nodes)


def sums_of_products(
    operator: Conv2d,
    x: Activation,
    output: Activation,
    tiles: Buffer,
    raised: int = 0,
    band: Band = WHOLE,
) -> Sums:
    """The sums of products, in ACC; ``raised``: what is added to the inputs."""
    lanes = output.lanes
    _, blocks, kernel_h, kernel_w, _, _ = tiles.shape
    shape = (output.blocks, output.height, output.width, lanes)
    acc = Buffer("acc", shape, DType.INT32, Scope.ACC)
    place = place_of("acc.")
    (sy, sx), (top, left, _, _) = operator.strides, operator.pads
    down, across = operator.dilations
    k, ky, kx, i = (Variable(name) for name in ("k", "ky", "kx", "i"))
    row = place.y * sy + ky * down - top
    column = place.x * sx + kx * across - left
    if x.image:
        row, column = (column, place.y) if x.image.transposed else (row, place.x)
    tile = Load(tiles, (place.c, k, ky, kx, place.l, i))
    value = _product(
        x.at(place.c * band.step + k + band.first, row, column, i),
        tile,
        -operator.weight_zero_point,
        raised,
    )
    loop_sizes = (
        *(("acc.c", output.blocks), ("acc.y", output.height), ("acc.x", output.width)),
        *(("k", blocks), ("ky", kernel_h), ("kx", kernel_w), ("acc.l", lanes), ("i", lanes)),
    )
    add = Update(acc, place.indices, BinaryFunction.ADD, value)
    zero = Store(acc, place_of("clear.").indices, Constant(0, DType.INT32))
    return Sums(acc, (nest(output, zero, "clear."), loops(loop_sizes, add)))


def define_depthwise(
    graph: Graph, layer: Layer, x: Activation, output: Activation, raises: bool, depth: int
) -> Definition:
    """raises: whether VECTOR takes zero points from inputs, so that no bias has to do it.

    depth: words of TAP.
    """
    node = layer.nodes[0]
    operator = node.operator
    assert isinstance(operator, Conv2d)
    weights, bias = (graph.constants[name] for name in node.inputs[1:3])
    _, kernel_h, kernel_w, _ = weights.shape
    cut = cut_row(operator, (kernel_h, kernel_w), output.width, depth)
    row, first = cut.words, max(0, WINDOW - cut.width)
    count = -(-kernel_h * row // TAP_GROUP) * TAP_GROUP
    # A single pixel waits for its parameters and taps, not for VECTOR.
    single = kernel_h == kernel_w == output.height == output.width == 1
    raised = 0
    if raises and single and not bias.any() and not _is_fixed(layer):
        raised, row, first, count = -operator.zero_point, 1, 0, 1
    padded = np.full((x.blocks * x.lanes, count), operator.weight_zero_point, np.int8)
    rows = padded[:, : kernel_h * row].reshape(-1, kernel_h, row)
    places = x.channel_places[:, None, None], np.arange(kernel_h)[:, None]
    rows[*places, first + cut.places(kernel_w)] = weights[..., 0]
    padded[:, : kernel_h * row] = rows.reshape(len(padded), -1)
    taps = padded.reshape(x.blocks, x.lanes, count).transpose(0, 2, 1)
    if raised and (taps == taps[:1]).all():
        taps = taps[:1]
    folded = bias if raised else folded_bias(weights, bias, operator)
    finish, constants = channel_finish(graph, layer, folded, output)
    buffer = constant_buffer("taps", taps)
    top, left = operator.pads[:2]

    def value(place: Place) -> Expr:
        block_of = place.c if len(taps) > 1 else Constant(0, DType.INT64)
        column: Expr = Variable("kx")
        word = Variable("ky") * row + column + first
        if cut.groups > 1:
            word, column = (
                each + Variable(GROUPS) * step
                for each, step in ((word, row // cut.groups), (column, cut.step))
            )
        tap = Load(buffer, (block_of, word, place.l))
        source = window_of(x, place, operator.strides, (top, left), operator.dilations, column)
        return _product(source, tap, -operator.weight_zero_point, raised)

    groups = ((GROUPS, cut.groups),) if cut.groups > 1 else ()
    fold = Fold((("ky", kernel_h), *groups, ("kx", cut.width)), BinaryFunction.ADD, 0)
    macs = output.height * output.width * output.channels * kernel_h * kernel_w
    constants["taps"] = np.ascontiguousarray(taps)
    return Definition(value, finish, fold, None, constants, macs)


def _product(source: Load, weight: Load, offset: int, raised: int = 0) -> Expr:
    """``(source + raised) * (weight + offset)``, exact in int32."""
    left: Expr = Cast(DType.INT32, source)
    factor: Expr = Cast(DType.INT32, weight)
    return (left + raised if raised else left) * (factor + offset if offset else factor)


def _weights_of_windows(weights: Array, image: Image, lanes: int, zero_point: int) -> Array:
    """OHWI weights with the bytes of a window as channels, in one column or one row.

    Bytes between pixels, and lanes behind the window of a plane, have the weight ``zero_point``,
    which counts as 0.
    """
    parts = [
        _weights_of_plane(part, image, zero_point) for part in np.split(weights, image.planes, 3)
    ]
    room = -image.window_bytes % lanes
    spread = [
        np.pad(part, (*((0, 0),) * 3, (0, room)), constant_values=zero_point) for part in parts[:-1]
    ]
    return np.ascontiguousarray(np.concatenate([*spread, parts[-1]], axis=3))


def _weights_of_plane(weights: Array, image: Image, zero_point: int) -> Array:
    gap = image.pixel_bytes - image.channels
    weights = np.pad(weights, (*((0, 0),) * 3, (0, gap)), constant_values=zero_point)
    out_channels, height, width, channels = weights.shape
    if image.transposed:
        return weights.transpose(0, 2, 1, 3).reshape(out_channels, 1, width, height * channels)
    return weights.reshape(out_channels, height, 1, width * channels)
