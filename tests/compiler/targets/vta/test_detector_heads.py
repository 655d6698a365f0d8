"""Heads of detectors, which have their channels first, run between layers without a host."""

import math
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler import compile
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.softmax import RowSoftmax
from dovetail.compiler.graph.operators.integer.values import Requantize
from dovetail.compiler.graph.operators.movement import Concatenate, Reshape, Slice, Transpose
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.grouped_rows import GroupedRows
from dovetail.compiler.targets.vta.passes.sink_transposes import SINK_TRANSPOSES
from dovetail.runtime import run
from tests.compiler.graph.passes.integer_layers.models import F32, ModelBuilder, reference

from .integer_graphs import inputs_of

BINS, CLASSES = 16, 5
STEP = F32(1 / 16)


class _Detector(ModelBuilder):
    """Two images, a distribution of each side of a box around each pixel, and its classes."""

    def shown(self, x: str, scale: float = STEP, zero_point: int = 3) -> str:
        bytes_ = self.quantize(x, F32(scale), np.int8(zero_point))
        return self.dequantize(bytes_, F32(scale), np.int8(zero_point))

    def conv(self, x: str, outputs: int, channels: int, size: int, step: int = 1) -> str:
        rng = np.random.default_rng(outputs + channels)
        weights = rng.integers(-90, 91, (outputs, channels, size, size)).astype(np.int8)
        w = self.dequantize(self.constant(weights), F32(1 / 512), np.int8(0))
        pads = [size // 2] * 4
        return self.shown(self.node("Conv", [x, w], strides=[step, step], pads=pads))

    def rows(self, images: Sequence[str], channels: int) -> str:
        shape = self.constant(np.array([1, channels, -1]))
        rows = [self.shown(self.node("Reshape", [x, shape])) for x in images]
        return self.shown(self.node("Concat", rows, axis=2))

    def part(self, x: str, first: int, end: int) -> str:
        bounds = [self.constant(np.array([value])) for value in (first, end, 1)]
        return self.shown(self.node("Slice", [x, *bounds]), 1 / 8, -128)

    def model(self) -> onnx.ModelProto:
        x = self.dequantize("x", STEP, np.int8(3))
        large = self.conv(x, 8, 3, 3)
        images = [large, self.conv(large, 8, 8, 3, 2)]
        boxes = self.rows([self.conv(each, 4 * BINS, 8, 1) for each in images], 4 * BINS)
        scores = self.rows([self.conv(each, CLASSES, 8, 1) for each in images], CLASSES)
        split = self.constant(np.array([1, 4, BINS, -1]))
        sides = self.shown(self.node("Reshape", [boxes, split]))
        turned = self.shown(self.node("Transpose", [sides], perm=[0, 2, 1, 3]))
        soft = self.shown(self.node("Softmax", [turned], axis=1), 1 / 256, -128)
        bins = self.constant(np.arange(BINS, dtype=np.int8).reshape(1, BINS, 1, 1))
        mean = self.node("Conv", [soft, self.dequantize(bins, F32(1), np.int8(0))])
        joined = self.node("Reshape", [self.shown(mean, 1 / 8, -128), self.constant([1, 4, -1])])
        joined = self.shown(joined, 1 / 8, -128)
        near, far = self.part(joined, 0, 2), self.part(joined, 2, 4)
        pixels = np.random.default_rng(1).integers(0, 100, (1, 2, 10)).astype(np.int8)
        anchors = self.dequantize(self.constant(pixels), F32(1 / 8), np.int8(0))
        corners = [
            self.shown(self.node(kind, pair), 1 / 8, 0)
            for kind, pair in (("Sub", [anchors, near]), ("Add", [anchors, far]))
        ]
        sure = self.shown(self.node("Sigmoid", [scores]), 1 / 8, 0)
        found = self.node("Concat", [*corners, sure], axis=1)
        return self.build({"x": ("int8", (1, 3, 2, 4))}, self.quantize(found, STEP * 2, np.int8(0)))


def test_a_detector_is_one_part() -> None:
    model = _Detector().model()
    x = {"x": np.random.default_rng(2).integers(-128, 128, (1, 3, 2, 4)).astype(np.int8)}
    module = compile(model, "vta:tiny")
    assert len(module.parts) == 1
    (found,) = run(module, x, "sim").outputs.values()
    (plain,) = run(compile(model, "cpu"), x, "cpu").outputs.values()
    np.testing.assert_array_equal(found, plain)
    # Its softmax may be a step away from ONNX Runtime's, as in attention.
    wanted = reference(model, x)
    np.testing.assert_array_equal(found[:, 4:], wanted[:, 4:])
    assert np.abs(found[:, :4].astype(int) - wanted[:, :4]).max() <= 1


def _same_bytes(graph: Graph, other: Graph) -> None:
    values = inputs_of(graph, 3)
    (name,) = graph.outputs
    np.testing.assert_array_equal(interpret(other, values)[name], interpret(graph, values)[name])


@given(st.data())
def test_a_transpose_sinks_below_a_reshape_that_keeps_it_whole(data: st.DataObject) -> None:
    """Axes of the transposed tensor are joined and split at random."""
    sizes = data.draw(st.lists(st.sampled_from([1, 2, 4, 6]), min_size=2, max_size=4))
    order = tuple(data.draw(st.permutations(range(len(sizes)))))
    builder = GraphBuilder()
    x = builder.input("x", TensorType(tuple(sizes), "int8"))
    turned = builder.node(Transpose(order), (x,), "turned", "turned")
    count, shape = math.prod(sizes), []
    while count > 1:
        shape.append(data.draw(st.sampled_from([n for n in (2, 3, 4, 8, count) if count % n == 0])))
        count //= shape[-1]
    shape.insert(data.draw(st.integers(0, len(shape))), 1)
    graph = builder.build((builder.node(Reshape(tuple(shape)), (turned,), "y", "y"),))
    _same_bytes(graph, SINK_TRANSPOSES.run(graph))


def test_transposes_of_what_is_joined_sink_as_one() -> None:
    builder = GraphBuilder()
    parts = []
    for name, count in (("x", 6), ("y", 3)):
        image = builder.input(name, TensorType((1, count, 32), "int8"))
        parts.append(builder.node(Transpose((0, 2, 1)), (image,), "turned", "turned"))
    joined = builder.node(Concatenate(2), tuple(parts), "joined", "joined")
    split = builder.node(Reshape((1, 2, 16, 9)), (joined,), "split", "split")
    part = builder.node(Slice((0, 1, 0, 0), (1, 1, 1, 1), (1, 1, 16, 9)), (split,), "part", "part")
    graph = builder.build((builder.node(Transpose((0, 3, 1, 2)), (part,), "y", "y"),))
    sunk = SINK_TRANSPOSES.run(graph)
    assert not any(isinstance(node.operator, Transpose) for node in sunk.nodes)
    _same_bytes(graph, sunk)


@pytest.mark.parametrize("lanes", [4, 32])
def test_rows_of_whole_blocks_of_channels_stay_where_they_are(lanes: int) -> None:
    rng, builder = np.random.default_rng(0), GraphBuilder()
    x = builder.input("x", TensorType((1, 9, 32), "int8"))
    rows = builder.node(Reshape((1, 9, 2, 16)), (x,), "rows", "rows")
    soft = builder.node(RowSoftmax(0.1, 1 / 256, -128), (rows,), "soft", "soft")
    weights = builder.constant("w", rng.integers(-99, 99, (3, 1, 1, 16)).astype(np.int8))
    bias = builder.constant("b", np.array([9, -9, 99], np.int32))
    conv = Conv2d((1, 1), (0, 0, 0, 0), 1, -128, 5)
    total = builder.node(conv, (soft, weights, bias), "total", "total")
    scale = builder.constant("s", np.array([0.02, 0.03, 0.01], np.float32))
    graph = builder.build((builder.node(Requantize(3, -128, 127), (total, scale), "y", "y"),))
    grouped = GroupedRows(lanes).run(graph)
    kinds = [type(node.operator) for node in grouped.nodes]
    assert (grouped is graph) == (lanes == 32)
    assert lanes == 32 or kinds.count(RowSoftmax) == 2
    _same_bytes(graph, grouped)
