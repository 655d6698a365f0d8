"""Taps that read nothing but padding are dropped, and the sums stay."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.drop_taps import DROP_TAPS


def convolution(shape: tuple[int, int], kernel: tuple[int, int], operator: Conv2d) -> Graph:
    """One of two channels to three, with random weights."""
    rng = np.random.default_rng(5)
    builder = GraphBuilder([], [], {}, {})
    x = builder.input("x", TensorType((1, *shape, 2), DType.INT8))
    weights = builder.constant("w", rng.integers(-128, 128, (3, *kernel, 2)).astype(np.int8))
    bias = builder.constant("b", rng.integers(-999, 999, 3).astype(np.int32))
    return builder.build((builder.node(operator, (x, weights, bias), "y", "conv"),))


def dropped(graph: Graph) -> Graph:
    """Without those taps, and with the same sums."""
    found = DROP_TAPS.run(graph)
    values = np.random.default_rng(6).integers(-128, 128, graph.types["x"].shape).astype(np.int8)
    for name in graph.outputs:
        wanted = interpret(graph, {"x": values})[name]
        np.testing.assert_array_equal(interpret(found, {"x": values})[name], wanted)
    return found


def test_a_dilation_wider_than_the_image_leaves_one_tap() -> None:
    found = dropped(convolution((6, 6), (3, 3), Conv2d((1, 1), (36,) * 4, 1, 7, 0, (36, 36))))
    (node,) = found.nodes
    assert found.types[node.inputs[1]].shape == (3, 1, 1, 2)
    assert isinstance(node.operator, Conv2d)
    assert node.operator.pads == (0, 0, 0, 0)


def test_taps_that_read_a_pixel_stay() -> None:
    graph = convolution((6, 6), (3, 3), Conv2d((1, 1), (1, 1, 1, 1), 1, 7))
    assert DROP_TAPS.run(graph) is graph


@given(
    *(st.tuples(*[st.integers(1, most)] * 2) for most in (5, 4, 3, 7)),
    st.tuples(*[st.integers(0, 9)] * 4),
)
def test_sums_stay(
    shape: tuple[int, int],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    pads: tuple[int, int, int, int],
) -> None:
    try:
        graph = convolution(shape, kernel, Conv2d(strides, pads, 1, -3, 11, dilations))
    except GraphError:
        return
    dropped(graph)
