"""Random layers of every kind, lowered, with arrays in the blocked layout."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.typing import NDArray

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d, Dense
from dovetail.compiler.graph.operators.integer.values import Add, Lookup, Multiply, Requantize
from dovetail.compiler.graph.operators.integer.windows import AveragePool2d, MaxPool2d
from dovetail.compiler.graph.operators.movement import Reshape
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Function
from dovetail.compiler.targets.vta.layers.activation import Activation
from dovetail.compiler.targets.vta.layers.definition import LoweredLayer
from dovetail.compiler.targets.vta.layers.fixed_point_product import find_scale
from dovetail.compiler.targets.vta.layers.lower import lower
from dovetail.compiler.targets.vta.layers.plan_activations import plan_activations
from dovetail.compiler.targets.vta.passes.dense_to_conv import DenseToConv
from dovetail.compiler.targets.vta.passes.fuse import Partition, fuse

Array = NDArray[Any]

RUBBISH = -93
KINDS = ("conv", "depthwise", "dense", "dense_image", "add", "product", "max", "average", "lookup")
INT8 = st.integers(-128, 127)
RATIOS = st.sampled_from((0.5, 0.75, 1.0, 1.25, 0.3, 0.871))


@dataclass(frozen=True, slots=True)
class Network:
    """A graph of one or several layers, all lowered, and its tensors for one random input."""

    graph: Graph
    partition: Partition
    activations: dict[str, Activation]
    layers: tuple[LoweredLayer, ...] = field(repr=False)
    values: dict[str, Array] = field(repr=False)

    def arrays(self, layer: LoweredLayer) -> dict[str, Array]:
        """Every parameter of a layer: inputs and constants filled, the result with rubbish."""
        arrays: dict[str, Array] = {
            layer.output.name: np.full(layer.output.buffer.shape, 77, np.int8)
        }
        arrays |= {x.name: to_blocked(self.values[x.name], x) for x in layer.inputs}
        return arrays | {name: array.copy() for name, array in layer.constants.items()}

    def result(self, layer: LoweredLayer, function: Function | None = None) -> Array:
        """Result of ``function``, or else of the layer's own; NHWC."""
        return run_function(function or layer.function, self.arrays(layer), layer.output)

    def wanted(self, layer: LoweredLayer) -> Array:
        """Result of the graph's interpreter for the layer; NHWC."""
        out = layer.output
        return self.values[out.name].reshape(1, out.height, out.width, out.channels)


def run_function(function: Function, arrays: dict[str, Array], output: Activation) -> Array:
    """Result of ``function`` for ``arrays``, by the names of its parameters; NHWC."""
    inputs = {buffer.name: arrays[buffer.name] for buffer in function.inputs}
    found = interpret(function, inputs, seed=1, initial={output.name: arrays[output.name]})
    return from_blocked(found[output.name], output)


def to_blocked(values: Array, activation: Activation, rubbish: int = RUBBISH) -> Array:
    """int8[1, H, W, C] or [1, C] in the layout of ``activation``.

    The halo holds ``fill``; channels beyond C, and a halo without fill, hold ``rubbish``.
    """
    x = activation
    if x.image:
        return windows_of(values, x)
    fill = rubbish if x.fill is None else x.fill
    blocked = np.full(x.buffer.shape, fill, np.int8)
    inside = np.full((x.height, x.width, x.blocks * x.lanes), rubbish, np.int8)
    inside[..., : x.channels] = values.reshape(x.height, x.width, x.channels)
    top, left = x.halo[:2]
    tiles = inside.reshape(x.height, x.width, x.blocks, x.lanes).transpose(2, 0, 1, 3)
    blocked[:, top : top + x.height, left : left + x.width] = tiles
    return blocked


def windows_of(values: Array, x: Activation) -> Array:
    """The windows of the rows of an image int8[1, H, W, C], channel by channel.

    What is none of a window's channels is rubbish.
    """
    image, lanes = x.image, x.lanes
    assert image is not None
    assert x.fill is not None
    rows = values[0].swapaxes(0, 1) if image.transposed else values[0]
    own, size = image.windows, image.pixel_bytes
    stride, before = (own.stride, own.before) if own else (image.step // size, image.lead // size)
    blocked = np.full(x.buffer.shape, x.fill, np.int8)
    for block, row, column, lane in np.ndindex(x.blocks, x.height, x.width, lanes):
        plane, part = divmod(block, image.plane_blocks(lanes))
        pixel, channel = divmod(part * lanes + lane, size)
        place = column * stride - before + pixel
        at = block, x.halo[0] + row, column, lane
        if channel >= image.channels or part * lanes + lane >= image.window_bytes:
            blocked[at] = RUBBISH
        elif 0 <= place < rows.shape[1]:
            blocked[at] = rows[row, place, plane * image.channels + channel]
    return blocked


def from_blocked(blocked: Array, activation: Activation) -> Array:
    """The inside of a blocked array as [1, H, W, C]."""
    x = activation
    top, left = x.halo[:2]
    inside = blocked[:, top : top + x.height, left : left + x.width]
    flat = inside.transpose(1, 2, 0, 3).reshape(1, x.height, x.width, x.blocks * x.lanes)
    return np.ascontiguousarray(flat[..., : x.channels])


def lower_graph(graph: Graph, lanes: int, seed: int) -> Network:
    """Lower every layer of ``graph``, and evaluate it on a random input."""
    graph = DenseToConv().run(graph)
    partition = fuse(graph)
    activations = plan_activations(graph, partition, lanes)
    layers = tuple(lower(graph, layer, activations) for layer in partition.layers)
    rng = np.random.default_rng(seed)
    (name,) = graph.inputs
    x = rng.integers(-128, 128, graph.types[name].shape).astype(np.int8)
    values = run(graph, {name: x})
    return Network(graph, partition, activations, layers, values)


@st.composite
def networks(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, lanes: int | None = None) -> Network:
    """One layer of one of ``kinds``, perhaps with a lookup in it."""
    kind = draw(st.sampled_from(kinds))
    seed = draw(st.integers(0, 2**20))
    rng = np.random.default_rng(seed)
    if lanes is None:
        lanes = draw(st.sampled_from((1, 2, 4)))
    builder = GraphBuilder()
    channels = draw(st.integers(1, 6))
    shape = (1, draw(st.integers(1, 7)), draw(st.integers(1, 7)), channels)
    x = builder.input("x", TensorType((1, channels) if kind == "dense" else shape, "int8"))
    y = _layer(draw, builder, kind, x, rng)
    if draw(st.booleans()):
        y = _lookup(builder, y, rng)
    return lower_graph(builder.build((y,)), lanes, seed)


def _layer(
    draw: st.DrawFn, builder: GraphBuilder, kind: str, x: str, rng: np.random.Generator
) -> str:
    shape = builder.types[x].shape
    match kind:
        case "conv" | "depthwise":
            return _conv(draw, builder, x, rng, depthwise=kind == "depthwise")
        case "dense" | "dense_image":
            size = int(np.prod(shape))
            flat = x
            if kind == "dense_image":
                flat = builder.node(Reshape((1, size)), (x,), "flat", "flat")
                if shape[1:3] != (1, 1):
                    return _conv(draw, builder, x, rng, depthwise=False, whole=True)
            weights = rng.integers(-128, 128, (draw(st.integers(1, 6)), size)).astype(np.int8)
            return _requantize(
                draw, builder, Dense(draw(INT8)), (flat, builder.constant("w", weights)), rng
            )
        case "add":
            add = Add(
                draw(RATIOS), draw(RATIOS), draw(INT8), draw(INT8), draw(INT8), *draw(limits())
            )
            return builder.node(add, (x, x), "y", "add")
        case "product":
            zeros = draw(INT8), draw(INT8), draw(INT8)
            multiply = Multiply(draw(RATIOS) / 64, *zeros, *draw(limits()), draw(st.booleans()))
            assume(not find_scale(multiply).inexact_pairs)
            part = draw(st.sampled_from((shape[1:3], (1, 1), (shape[1], 1), (1, shape[2]))))
            kernel = (shape[1] - part[0] + 1, shape[2] - part[1] + 1)
            pool = MaxPool2d(kernel, (1, 1), (0, 0, 0, 0))
            return builder.node(multiply, (x, builder.node(pool, (x,), "part", "part")), "y", "y")
        case "max":
            kernel, strides, pads = draw(windows(shape))
            return builder.node(MaxPool2d(kernel, strides, pads), (x,), "y", "max")
        case "average":
            kernel, strides, _ = draw(windows(shape, padded=False))
            scale = float(np.float32(draw(RATIOS) / (kernel[0] * kernel[1])))
            pool = AveragePool2d(kernel, strides, draw(INT8), draw(INT8), scale)
            return builder.node(pool, (x,), "y", "average")
        case _:
            return _lookup(builder, x, rng)


def _lookup(builder: GraphBuilder, x: str, rng: np.random.Generator) -> str:
    table = builder.constant("table", rng.integers(-128, 128, 256).astype(np.int8))
    return builder.node(Lookup(), (x, table), "looked_up", "lookup")


def _conv(
    draw: st.DrawFn,
    builder: GraphBuilder,
    x: str,
    rng: np.random.Generator,
    *,
    depthwise: bool,
    whole: bool = False,
) -> str:
    """A convolution; ``whole`` for a kernel as large as the image."""
    shape = builder.types[x].shape
    kernel, strides, pads = draw(windows(shape))
    if whole:
        kernel, strides, pads = (shape[1], shape[2]), (1, 1), (0, 0, 0, 0)
    outputs = shape[3] if depthwise else draw(st.integers(1, 6))
    groups, depth = (shape[3], 1) if depthwise else (1, shape[3])
    weights = rng.integers(-128, 128, (outputs, *kernel, depth)).astype(np.int8)
    conv = Conv2d(strides, pads, groups, draw(INT8))
    return _requantize(draw, builder, conv, (x, builder.constant("w", weights)), rng)


def _requantize(
    draw: st.DrawFn,
    builder: GraphBuilder,
    operator: Conv2d | Dense,
    inputs: tuple[str, str],
    rng: np.random.Generator,
) -> str:
    outputs = builder.types[inputs[1]].shape[0]
    bias = builder.constant("b", rng.integers(-4000, 4000, outputs).astype(np.int32))
    scale = builder.constant("s", rng.uniform(1e-4, 0.02, outputs).astype(np.float32))
    total = builder.node(operator, (*inputs, bias), "sum", "conv")
    low, high = draw(limits())
    return builder.node(Requantize(draw(INT8), low, high), (total, scale), "y", "conv")


@st.composite
def limits(draw: st.DrawFn) -> tuple[int, int]:
    """The clip of an operator: often all of int8."""
    if draw(st.booleans()):
        return -128, 127
    low = draw(INT8)
    return low, draw(st.integers(low, 127))


@st.composite
def windows(
    draw: st.DrawFn, shape: tuple[int, ...], *, padded: bool = True
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]]:
    """Kernel, strides and pads that fit an image of ``shape``; pads are less than the kernel."""
    kernel = draw(st.tuples(*(st.integers(1, min(3, size)) for size in shape[1:3])))
    strides = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    if not padded or draw(st.booleans()):
        return kernel, strides, (0, 0, 0, 0)
    (h, w) = (st.integers(0, size - 1) for size in kernel)
    return kernel, strides, draw(st.tuples(h, w, h, w))
