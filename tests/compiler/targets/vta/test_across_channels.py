"""Convolutions over channels are products with band matrices, and the bytes stay."""

import numpy as np
import pytest

from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Lookup, Requantize
from dovetail.compiler.graph.operators.integer.windows import AveragePool2d
from dovetail.compiler.graph.operators.movement import Reshape, Transpose
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.across_channels import ACROSS_CHANNELS
from dovetail.compiler.targets.vta.passes.split_bands import SplitBands

from .test_parts import assert_exact, compiled

LANES = 4


def attention(channels: int, operator: Conv2d, kernel: int, *, look_up: bool = True) -> Graph:
    """A convolution over the means of channels, in the forms that front ends leave."""
    rng, builder = np.random.default_rng(channels), GraphBuilder()
    x = builder.input("x", TensorType((1, 3, 3, channels), "int8"))
    pool = AveragePool2d((3, 3), (3, 3), 0, 4, 0.3)
    mean = builder.node(pool, (x,), "mean", "mean")
    planes = builder.node(Transpose((0, 3, 1, 2)), (mean,), "planes", "planes")
    line = builder.node(Reshape((1, 1, channels, 1)), (planes,), "line", "line")
    weights = rng.integers(-127, 128, (1, 1, kernel, 1)).astype(np.int8)
    inputs = (builder.constant("w", weights), builder.constant("b", np.array([99], np.int32)))
    total = builder.node(operator, (line, *inputs), "sum", "conv")
    scale = builder.constant("scale", np.array([7e-3], np.float32))
    y = builder.node(Requantize(-3, -128, 127), (total, scale), "y", "y")
    if look_up:
        table = builder.constant("table", rng.integers(-128, 128, 256).astype(np.int8))
        y = builder.node(Lookup(), (y, table), "found", "found")
    row = Reshape((1, 1, 1, builder.types[y].elements))
    return builder.build((builder.node(row, (y,), "row", "row"),))


@pytest.mark.parametrize(
    ("channels", "operator", "kernel"),
    [
        (8, Conv2d((1, 1), (0, 1, 0, 1), 1, 4), 3),
        (48, Conv2d((1, 1), (0, 2, 0, 2), 1, -9), 5),
        (22, Conv2d((1, 2), (0, 3, 0, 0), 1, 4, 5, (1, 2)), 3),
    ],
)
@pytest.mark.parametrize("look_up", [True, False])
def test_a_convolution_over_channels_runs_on_the_accelerator(
    channels: int,
    operator: Conv2d,
    kernel: int,
    look_up: bool,
) -> None:
    graph = attention(channels, operator, kernel, look_up=look_up)
    assert_exact(graph, compiled(graph, "tiny"), "sim")


def test_the_tiles_beside_a_band_are_left_out() -> None:
    operator = Conv2d((1, 1), (0, 1, 0, 1), 1, 4)
    macs = [
        sum(layer.macs for layer in compiled(attention(size * LANES, operator, 3), "tiny").layers)
        for size in (16, 32)
    ]
    assert macs[1] < 2.2 * macs[0]


def test_a_row_of_an_image_stays_a_row() -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 1, 1, 8), "int8"))
    line = builder.node(Reshape((1, 1, 8, 1)), (x,), "line", "line")
    weights = builder.constant("w", np.ones((1, 1, 3, 1), np.int8))
    bias = builder.constant("b", np.zeros(1, np.int32))
    total = builder.node(Conv2d((1, 1), (0, 0, 0, 0), 1, 0), (line, weights, bias), "sum", "conv")
    scale = builder.constant("scale", np.ones(1, np.float32))
    graph = builder.build((builder.node(Requantize(0, -128, 127), (total, scale), "y", "y"),))
    assert ACROSS_CHANNELS.run(graph) is graph


def test_a_table_of_a_row_that_became_one_pixel_stays_there() -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 1, 8), "int8"))
    tables = [builder.constant(f"t{n}", np.arange(-128, 128).astype(np.int8)[::-1]) for n in (1, 2)]
    row = builder.node(Lookup(), (x, tables[0]), "row", "row")
    pixel = builder.node(Reshape((1, 1, 1, 8)), (row,), "pixel", "pixel")
    graph = builder.build((builder.node(Lookup(), (pixel, tables[1]), "y", "y"),))
    assert ACROSS_CHANNELS.run(graph) is graph


def test_a_dense_layer_is_one_part() -> None:
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, 1, 1, 64), "int8"))
    weights = np.random.default_rng(2).integers(1, 9, (64, 1, 1, 64)).astype(np.int8)
    inputs = (builder.constant("w", weights), builder.constant("b", np.zeros(64, np.int32)))
    total = builder.node(Conv2d((1, 1), (0, 0, 0, 0), 1, 0), (x, *inputs), "sum", "conv")
    scale = builder.constant("scale", np.ones(64, np.float32))
    graph = builder.build((builder.node(Requantize(0, -128, 127), (total, scale), "y", "y"),))
    assert SplitBands(LANES).run(graph) is graph
