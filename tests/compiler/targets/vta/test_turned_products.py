"""Products of two tensors whose rows become channels, as in attention over channels first."""

import numpy as np

from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import RowProducts
from dovetail.compiler.graph.operators.integer.values import Requantize
from dovetail.compiler.graph.operators.integer.windows import MaxPool2d
from dovetail.compiler.graph.operators.movement import Reshape, Transpose
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.turned_products import turn_products

from .integer_graphs import inputs_of
from .test_parts import assert_exact, compiled

SAME = MaxPool2d((1, 1), (1, 1), (0, 0, 0, 0))
HEIGHT, WIDTH, CHANNELS, HEADS = 2, 4, 8, 2


def _product(builder: GraphBuilder, x: str, y: str, zero_points: tuple[int, int]) -> str:
    total = builder.node(RowProducts(*zero_points), (x, y), "total", "product")
    count = builder.types[total].shape[-1]
    scale = builder.constant("scale", np.full(count, 2e-3, np.float32))
    return builder.node(Requantize(3, -128, 127), (total, scale), "product", "product")


def _attention() -> Graph:
    """``v @ shares.T`` of an image: its rows are channels, which an image has again."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, HEIGHT, WIDTH, CHANNELS), "int8"))
    x = builder.node(SAME, (x,), "x", "x")
    rows = builder.node(Reshape((1, HEIGHT * WIDTH, CHANNELS)), (x,), "rows", "rows")
    shares = _product(builder, rows, rows, (2, -5))
    values = builder.node(Transpose((0, 2, 1)), (rows,), "values", "values")
    y = _product(builder, values, shares, (1, 7))
    y = builder.node(Reshape((1, CHANNELS, HEIGHT, WIDTH)), (y,), "y", "y")
    y = builder.node(Transpose((0, 2, 3, 1)), (y,), "y", "y")
    return builder.build((builder.node(SAME, (y,), "y", "y"),))


def test_rows_that_become_channels_are_made_as_channels() -> None:
    graph = _attention()
    assert_exact(graph, compiled(graph, "tiny"), "sim")


def test_rows_of_heads_that_become_channels_are_made_as_channels() -> None:
    """[1, heads, channels, rows], turned to [1, rows, heads, channels]."""
    builder = GraphBuilder()
    shapes = {"x": (1, HEADS, 4, 4), "y": (1, HEADS, 6, 4)}
    for name, shape in shapes.items():
        builder.input(name, TensorType(shape, "int8"))
    made = _product(builder, "x", "y", (4, -9))
    found = builder.node(Transpose((0, 3, 1, 2)), (made,), "turned", "turned")
    graph = builder.build((found,))
    turned = turn_products(graph)
    last = turned.nodes[-1].operator
    assert last == Transpose((0, 2, 1, 3))
    given = inputs_of(graph, 2)
    for name in graph.outputs:
        np.testing.assert_array_equal(interpret(turned, given)[name], interpret(graph, given)[name])


def test_products_of_areas_become_one_image() -> None:
    """As in YOLO12: [areas, heads, channels, rows], of which each area is some rows of an image."""
    builder = GraphBuilder()
    for name, shape in {"x": (2, HEADS, 4, 8), "y": (2, HEADS, 6, 8)}.items():
        builder.input(name, TensorType(shape, "int8"))
    made = _product(builder, "x", "y", (4, -9))
    joined = builder.node(Transpose((1, 2, 0, 3)), (made,), "joined", "joined")
    planes = builder.node(Reshape((1, 8, 3, 4)), (joined,), "planes", "planes")
    graph = builder.build((builder.node(Transpose((0, 2, 3, 1)), (planes,), "image", "image"),))
    turned = turn_products(graph)
    (beside,) = [each.operator for each in turned.nodes if isinstance(each.operator, Transpose)]
    assert beside == Transpose((0, 2, 1, 3))
    given = inputs_of(graph, 2)
    (name,) = graph.outputs
    np.testing.assert_array_equal(interpret(turned, given)[name], interpret(graph, given)[name])
