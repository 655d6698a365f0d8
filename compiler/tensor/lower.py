"""Layers to kernels, in the accelerator's blocked layout.

An activation of C channels is int8[C / lanes, top + H + bottom, left + W + right, lanes]: channels
in blocks, with the halo its readers need.  Channels beyond C hold anything; their weights are 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import UnsupportedOperatorError
from ..graph.fuse import Layer, Partition
from ..graph.ir import Graph
from ..graph.ops import Add, AveragePool2d, Conv2d, Lookup, MaxPool2d, Pads, Requantize, Upsample2d
from .fixed_point_add import FixedPointAdd, find_fixed_point
from .image import Image, find_image
from .ir import (
    Affine,
    Buffer,
    Fold,
    Kernel,
    Loop,
    LoopKind,
    Product,
    Ref,
    Requantized,
    Scaled,
    Scope,
    Stage,
    Total,
    Value,
    var,
)

__all__ = ["ADDEND", "Activation", "LoweredLayer", "lower", "plan_activations"]

Array = NDArray[np.generic]

ADDEND = "addend"
"""The buffer between a convolution and the residual sum in its layer."""


@dataclass(frozen=True, slots=True)
class Activation:
    """An on-chip tensor: ``channels`` in blocks of ``lanes``, and its halo.

    halo: top, left, bottom, right.  fill: what the halo holds; None when nobody reads it.
    image: when its words are windows of an image's rows; then ``channels`` are bytes of a window.
    first_block, whole_channels: of a part of a tensor called ``name`` with that many channels: the
    block of the tensor that is the part's first.
    """

    name: str
    channels: int
    height: int
    width: int
    lanes: int
    halo: tuple[int, int, int, int] = (0, 0, 0, 0)
    fill: int | None = None
    image: Image | None = None
    first_block: int = 0
    whole_channels: int | None = None

    @property
    def blocks(self) -> int:
        """Channel blocks."""
        return -(-self.channels // self.lanes)

    @property
    def rows(self) -> int:
        """Rows with the halo."""
        return self.height + self.halo[0] + self.halo[2]

    @property
    def columns(self) -> int:
        """Columns with the halo."""
        return self.width + self.halo[1] + self.halo[3]

    @property
    def whole(self) -> "Activation":
        """The tensor that this is part of; itself, when it is whole."""
        if self.whole_channels is None:
            return self
        return replace(self, channels=self.whole_channels, first_block=0, whole_channels=None)

    @property
    def words(self) -> int:
        """Words of ACT."""
        return self.blocks * self.rows * self.columns

    @property
    def buffer(self) -> Buffer:
        """The whole tensor as a buffer."""
        shape = (self.whole.blocks, self.rows, self.columns, self.lanes)
        return Buffer(self.name, shape, "int8", Scope.ACT)

    def at(self, block: Affine, row: Affine, column: Affine, lane: Affine) -> Ref:
        """An element by its place without the halo."""
        place = (block + self.first_block, row + self.halo[0], column + self.halo[1], lane)
        return Ref(self.buffer, place)


@dataclass(frozen=True, slots=True)
class LoweredLayer:
    """A kernel, its constants by buffer name, and the activations it reads and writes.

    inexact_pairs: of a residual add: operand pairs (of 65,536) whose result differs from the float
    formula.
    """

    kernel: Kernel
    constants: dict[str, Array] = field(compare=False)
    inputs: tuple[Activation, ...]
    output: Activation
    inexact_pairs: int = 0


def plan_activations(graph: Graph, partition: Partition, lanes: int) -> dict[str, Activation]:
    """Every activation of the layers, with the halo that all its readers together need.

    Raises UnsupportedOperatorError when two readers need different halo values, or a tensor is of
    more than one image.
    """
    names = (partition.source, *(layer.output for layer in partition.layers), *partition.views)
    roots = dict.fromkeys(partition.root(name)[0] for name in names)
    activations = {name: _plain(graph, name, lanes) for name in roots}
    first = _image(graph, partition, lanes)
    if first:
        activations[first.name] = first
    needs: dict[str, tuple[int, str]] = {}
    for layer in partition.layers:
        operator = layer.nodes[0].operator
        if not isinstance(operator, Conv2d | MaxPool2d) or not any(operator.pads):
            continue
        name, _ = partition.root(layer.inputs[0])
        if activations[name].image:
            continue
        fill = operator.zero_point if isinstance(operator, Conv2d) else -128
        known = needs.setdefault(name, (fill, layer.name))
        if known[0] != fill:
            raise UnsupportedOperatorError(
                f"nodes {known[1]!r} and {layer.name!r} pad one tensor with {known[0]} and {fill}; "
                "required one value"
            )
        old = activations[name]
        activations[name] = replace(old, halo=_largest(old.halo, operator.pads), fill=fill)
    _align_operands(partition, activations)
    parts = {
        name: _part(graph, partition, activations, name) for name in names if name not in roots
    }
    return activations | parts


def _part(
    graph: Graph, partition: Partition, activations: Mapping[str, Activation], name: str
) -> Activation:
    """The activation ``name``, part of another."""
    root, first = partition.root(name)
    whole, channels = activations[root], graph.types[name].shape[3]
    if first % whole.lanes:
        raise UnsupportedOperatorError(
            f"tensor {name!r} begins at channel {first} of {root!r}; required a multiple of "
            f"{whole.lanes}: the accelerator joins and parts channels in blocks of that many"
        )
    return replace(
        whole,
        channels=channels,
        first_block=first // whole.lanes,
        whole_channels=whole.channels,
    )


def _image(graph: Graph, partition: Partition, lanes: int) -> Activation | None:
    """The source as windows of rows, if its only reader is a convolution that this makes faster."""
    name = partition.source
    readers = [layer for layer in partition.layers if name in layer.inputs]
    viewed = name in {whole for whole, _ in partition.views.values()}
    if len(readers) != 1 or name == partition.result or viewed:
        return None
    node = readers[0].nodes[0]
    conv, shape = node.operator, graph.types[name].shape
    if not isinstance(conv, Conv2d) or conv.groups != 1 or conv.dilations != (1, 1):
        return None
    if len(shape) != 4:
        return None
    _, kernel_h, kernel_w, _ = graph.constants[node.inputs[1]].shape
    _, height, width, _ = graph.types[node.output].shape
    image = find_image(conv, shape, (kernel_h, kernel_w), (height, width), lanes)
    if image is None:
        return None
    return Activation(
        name,
        image.window_bytes,
        image.rows,
        image.columns,
        lanes,
        (image.halo[0], 0, image.halo[1], 0),
        conv.zero_point,
        image,
    )


def _align_operands(partition: Partition, activations: dict[str, Activation]) -> None:
    """Give both operands of every residual add one halo, since one address walks over both.

    Halos only grow, to at most the largest there is, so this ends.
    """
    changed = True
    while changed:
        changed = False
        for layer in partition.layers:
            operands = [activations[partition.root(name)[0]] for name in _summed(layer)]
            if len({operand.halo for operand in operands}) > 1:
                halo = _largest(*(operand.halo for operand in operands))
                for operand in operands:
                    activations[operand.name] = replace(operand, halo=halo)
                changed = True


def _summed(layer: Layer) -> tuple[str, ...]:
    """Activations that one address walks over: the operands of a sum, or one and the result."""
    if isinstance(layer.nodes[0].operator, Add):
        return layer.inputs
    if any(isinstance(node.operator, Add) for node in layer.nodes):
        return (layer.inputs[1], layer.output)
    return ()


def _largest(*halos: Pads) -> Pads:
    """The largest of each side."""
    top, left, bottom, right = (max(sides) for sides in zip(*halos, strict=True))
    return top, left, bottom, right


def _plain(graph: Graph, name: str, lanes: int) -> Activation:
    kind = graph.types[name]
    match kind.shape:
        case (1, height, width, channels):
            return Activation(name, channels, height, width, lanes)
        case (*ones, channels) if all(size == 1 for size in ones):
            return Activation(name, channels, 1, 1, lanes)
        case _:
            raise UnsupportedOperatorError(
                f"tensor {name!r} is {kind}; required int8[1, H, W, C] or int8[1, C]: the "
                "accelerator runs one image at a time"
            )


def lower(graph: Graph, layer: Layer, activations: dict[str, Activation]) -> LoweredLayer:
    """The kernel of ``layer``.

    Raises UnsupportedOperatorError when the accelerator cannot run its operator.
    """
    inputs = tuple(activations[name] for name in layer.inputs)
    output = activations[layer.output]
    match layer.nodes[0].operator:
        case Conv2d(groups=1):
            lowered = _conv(graph, layer, inputs[0], output)
        case Conv2d():
            lowered = _depthwise(graph, layer, inputs[0], output)
        case Add() as add:
            lowered = _add(layer, add, (inputs[0], inputs[1]), output)
        case MaxPool2d() as pool:
            value = _window(inputs[0], pool.strides, (pool.pads[0], pool.pads[1]))
            lowered = _windowed(layer, inputs[0], output, pool.kernel, Fold.MAX, value, None, {})
        case Upsample2d(factors=factors):
            lowered = _upsample(layer, factors, inputs[0], output)
        case AveragePool2d() as average:
            lowered = _average(layer, average, inputs[0], output)
        case Lookup():
            loops, reduction = _outer(output), frozenset[str]()
            place = (var("c"), var("y"), var("x"), var("l"))
            stage = Stage(
                "finish", loops, reduction, output.at(*place), Fold.NONE, inputs[0].at(*place)
            )
            lowered = LoweredLayer(Kernel(layer.name, (stage,)), {}, inputs, output)
        case other:
            raise UnsupportedOperatorError(
                f"node {layer.name!r}: {type(other).__name__} has no kernel for the accelerator"
            )
    return _with_table(graph, layer, _with_sum(layer, inputs, lowered))


def _outer(output: Activation, lane: str = "l") -> tuple[Loop, ...]:
    return (
        Loop("c", output.blocks),
        Loop("y", output.height),
        Loop("x", output.width),
        Loop(lane, output.lanes, LoopKind.LANE),
    )


def _blocked(values: Array, lanes: int, fill: float = 0) -> Array:
    """One value a channel as [blocks, lanes]."""
    padded = np.full(-(-len(values) // lanes) * lanes, fill, values.dtype)
    padded[: len(values)] = values
    return padded.reshape(-1, lanes)


def _requantized(
    graph: Graph, layer: Layer, bias: Array, lanes: int, block: str, lane: str
) -> tuple[Requantized, dict[str, Array]]:
    node = next(n for n in layer.nodes if isinstance(n.operator, Requantize))
    operator = node.operator
    assert isinstance(operator, Requantize)
    constants = {
        "bias": _blocked(bias.astype(np.int32), lanes),
        "scale": _blocked(graph.constants[node.inputs[1]].astype(np.float32), lanes, 1),
    }
    return _finish(
        constants, block, lane, operator.zero_point, operator.low, operator.high
    ), constants


def _finish(
    constants: dict[str, Array], block: str, lane: str, zero_point: int, low: int, high: int
) -> Requantized:
    shape = constants["bias"].shape
    index = (var(block) if shape[0] > 1 else Affine(), var(lane))
    bias = Ref(Buffer("bias", shape, "int32", Scope.PAR), index)
    scale = Ref(Buffer("scale", shape, "float32", Scope.PAR), index)
    return Requantized(bias, scale, zero_point, low, high)


def _folded_bias(weights: Array, bias: Array, operator: Conv2d) -> Array:
    """``bias - zero_point * sum(weights)``, one an output channel; wraps as int32 does.

    The weights count less their zero point.
    """
    factors = weights.astype(np.int64) - operator.weight_zero_point
    sums = factors.reshape(len(weights), -1).sum(axis=1)
    return (bias.astype(np.int64) - operator.zero_point * sums).astype(np.int32)


def _conv(graph: Graph, layer: Layer, x: Activation, output: Activation) -> LoweredLayer:
    node = layer.nodes[0]
    operator = node.operator
    assert isinstance(operator, Conv2d)
    weights, bias = (graph.constants[name] for name in node.inputs[1:3])
    if x.image:
        weights = _window_weights(weights, x.image)
    out_channels, kernel_h, kernel_w, in_channels = weights.shape
    lanes = x.lanes
    # Lanes without a channel have weights that count as 0.
    shape = (output.blocks * lanes, kernel_h, kernel_w, x.blocks * lanes)
    padded = np.full(shape, operator.weight_zero_point, np.int8)
    padded[:out_channels, :, :, :in_channels] = weights
    tiles = padded.reshape(output.blocks, lanes, kernel_h, kernel_w, x.blocks, lanes)
    tiles = np.ascontiguousarray(tiles.transpose(0, 4, 2, 3, 1, 5))
    finish, constants = _requantized(
        graph, layer, _folded_bias(weights, bias, operator), lanes, "c", "l"
    )
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
    source = x.at(var("k"), row, column, var("i"))
    tile = Ref(
        Buffer("weights", tiles.shape, "int8", Scope.WGT),
        (var("c"), var("k"), var("ky"), var("kx"), var("l"), var("i")),
    )
    inner = (
        Loop("k", x.blocks),
        Loop("ky", kernel_h),
        Loop("kx", kernel_w),
        Loop("i", lanes, LoopKind.LANE),
    )
    total = Stage(
        "sum",
        (*_outer(output), *inner),
        frozenset(loop.name for loop in inner),
        Ref(acc, place),
        Fold.SUM,
        Product(source, tile, -operator.weight_zero_point),
    )
    end = Stage(
        "finish", _outer(output), frozenset(), output.at(*place), Fold.NONE, Ref(acc, place), finish
    )
    macs = output.height * output.width * weights.size
    return LoweredLayer(Kernel(layer.name, (total, end), macs), constants, (x,), output)


def _window_weights(weights: Array, image: Image) -> Array:
    """OHWI weights with the bytes of a window as channels, in one column or one row."""
    out_channels, height, width, channels = weights.shape
    if image.transposed:
        turned = weights.transpose(0, 2, 1, 3).reshape(out_channels, 1, width, height * channels)
        return np.ascontiguousarray(turned)
    return weights.reshape(out_channels, height, 1, width * channels)


def _window(
    x: Activation,
    strides: tuple[int, int],
    before: tuple[int, int],
    dilations: tuple[int, int] = (1, 1),
) -> Ref:
    (sy, sx), (top, left), (dy, dx) = strides, before, dilations
    row = var("y") * sy + var("ky") * dy + -top
    return x.at(var("c"), row, var("x") * sx + var("kx") * dx + -left, var("l"))


def _windowed(
    layer: Layer,
    x: Activation,
    output: Activation,
    kernel: tuple[int, int],
    fold: Fold,
    value: Value,
    finish: Requantized | None,
    constants: dict[str, Array],
) -> LoweredLayer:
    """One stage over the windows of ``x``."""
    inner = (Loop("ky", kernel[0]), Loop("kx", kernel[1]))
    place = (var("c"), var("y"), var("x"), var("l"))
    loops, reduction = (*_outer(output), *inner), frozenset({"ky", "kx"})
    stage = Stage("finish", loops, reduction, output.at(*place), fold, value, finish)
    macs = output.height * output.width * output.channels * kernel[0] * kernel[1]
    kernel_ = Kernel(layer.name, (stage,), macs if isinstance(value, Product) else 0)
    return LoweredLayer(kernel_, constants, (x,), output)


def _depthwise(graph: Graph, layer: Layer, x: Activation, output: Activation) -> LoweredLayer:
    node = layer.nodes[0]
    operator = node.operator
    assert isinstance(operator, Conv2d)
    weights, bias = (graph.constants[name] for name in node.inputs[1:3])
    channels, kernel_h, kernel_w, _ = weights.shape
    # Rows of up to three taps are the last but one of four words, which are read together.
    row, first = (4, 3 - kernel_w) if kernel_w <= 3 else (kernel_w, 0)
    count = -(-kernel_h * row // 4) * 4
    padded = np.full((x.blocks * x.lanes, count), operator.weight_zero_point, np.int8)
    rows = padded[:channels, : kernel_h * row].reshape(channels, kernel_h, row)
    rows[:, :, first : first + kernel_w] = weights[..., 0]
    taps = padded.reshape(x.blocks, x.lanes, count).transpose(0, 2, 1)
    finish, constants = _requantized(
        graph, layer, _folded_bias(weights, bias, operator), x.lanes, "c", "l"
    )
    constants["taps"] = np.ascontiguousarray(taps)
    place = var("ky") * row + var("kx") + first
    tap = Ref(Buffer("taps", taps.shape, "int8", Scope.TAP), (var("c"), place, var("l")))
    top, left = operator.pads[:2]
    source = _window(x, operator.strides, (top, left), operator.dilations)
    value = Product(source, tap, -operator.weight_zero_point)
    kernel = (kernel_h, kernel_w)
    return _windowed(layer, x, output, kernel, Fold.SUM, value, finish, constants)


def _upsample(
    layer: Layer, factors: tuple[int, int], x: Activation, output: Activation
) -> LoweredLayer:
    """Each word again and again; the loops are those over ``x``, and ``d`` over its repetitions.

    Raises UnsupportedOperatorError for factors in both directions: one instruction has not levels
    enough.
    """
    down, across = factors
    if down > 1 and across > 1:
        raise UnsupportedOperatorError(
            f"node {layer.name!r}: pixels repeated down and across at once; required one of both"
        )
    *outer, lane = _outer(replace(output, height=x.height, width=x.width))
    row = var("y") * down + (var("d") if down > 1 else 0)
    column = var("x") * across + (var("d") if across > 1 else 0)
    target = output.at(var("c"), row, column, var("l"))
    source = x.at(var("c"), var("y"), var("x"), var("l"))
    loops = (*outer, Loop("d", max(factors)), lane)
    stage = Stage("finish", loops, frozenset(), target, Fold.NONE, source)
    return LoweredLayer(Kernel(layer.name, (stage,)), {}, (x,), output)


def _average(layer: Layer, pool: AveragePool2d, x: Activation, output: Activation) -> LoweredLayer:
    count = pool.kernel[0] * pool.kernel[1]
    constants: dict[str, Array] = {
        "bias": np.full((1, x.lanes), -count * pool.x_zero_point, np.int32),
        "scale": np.full((1, x.lanes), pool.scale, np.float32),
    }
    finish = _finish(constants, "c", "l", pool.zero_point, -128, 127)
    value = _window(x, pool.strides, (0, 0))
    return _windowed(layer, x, output, pool.kernel, Fold.SUM, value, finish, constants)


def _add(
    layer: Layer, add: Add, inputs: tuple[Activation, Activation], output: Activation
) -> LoweredLayer:
    place = (var("c"), var("y"), var("x"), var("l"))
    operands = (inputs[0].at(*place), inputs[1].at(*place))
    stage, constants, pairs = _sum_stage("add", add, operands, output)
    return LoweredLayer(Kernel(layer.name, (stage,)), constants, inputs, output, pairs)


def _with_sum(layer: Layer, inputs: tuple[Activation, ...], lowered: LoweredLayer) -> LoweredLayer:
    """With a last stage that adds the layer's second input, when the layer ends in a sum.

    What the convolution leaves is a buffer of its own, laid out like the result.
    """
    node = next((n for n in layer.nodes[1:] if isinstance(n.operator, Add)), None)
    if node is None:
        return lowered
    operator, output, other = node.operator, lowered.output, inputs[1]
    assert isinstance(operator, Add)
    *first, finish = lowered.kernel.stages
    left = Ref(replace(output.buffer, name=ADDEND), finish.target.indices)
    first.append(replace(finish, target=left))
    terms = (left, other.at(var("c"), var("y"), var("x"), var("l")))
    if node.inputs[0] == other.name:
        terms = (terms[1], terms[0])
    stage, constants, pairs = _sum_stage("add", operator, terms, output)
    kernel = replace(lowered.kernel, stages=(*first, stage))
    return replace(
        lowered,
        kernel=kernel,
        constants=lowered.constants | constants,
        inputs=(*lowered.inputs, other),
        inexact_pairs=pairs,
    )


def _sum_stage(
    name: str, add: Add, operands: tuple[Ref, Ref], output: Activation
) -> tuple[Stage, dict[str, Array], int]:
    """A stage that adds ``operands``, its constants, and how many pairs are inexact."""
    form: FixedPointAdd = find_fixed_point(add)
    constants: dict[str, Array] = {
        f"{name}_bias": np.full((1, output.lanes), form.offset, np.int32),
        f"{name}_scale": np.full((1, output.lanes), 2.0**-form.shift, np.float32),
    }
    index = (Affine(), var("l"))
    shape = (1, output.lanes)
    finish = Requantized(
        Ref(Buffer(f"{name}_bias", shape, "int32", Scope.PAR), index),
        Ref(Buffer(f"{name}_scale", shape, "float32", Scope.PAR), index),
        form.zero_point,
        add.low,
        add.high,
    )
    target = output.at(var("c"), var("y"), var("x"), var("l"))
    value = Total(Scaled(operands[0], form.m0), Scaled(operands[1], form.m1))
    stage = Stage(name, _outer(output), frozenset(), target, Fold.NONE, value, finish)
    return stage, constants, form.inexact_pairs


def _with_table(graph: Graph, layer: Layer, lowered: LoweredLayer) -> LoweredLayer:
    node = next((n for n in layer.nodes if isinstance(n.operator, Lookup)), None)
    if node is None:
        return lowered
    lanes = lowered.output.lanes
    table = np.repeat(graph.constants[node.inputs[1]].reshape(256, 1), lanes, axis=1)
    buffer = Buffer("table", (256, lanes), "int8", Scope.TAB)
    last = replace(lowered.kernel.stages[-1], table=buffer)
    kernel = replace(lowered.kernel, stages=(*lowered.kernel.stages[:-1], last))
    return replace(lowered, kernel=kernel, constants={**lowered.constants, "table": table})
