"""Elements between two windows of a row become channels, and the sums stay."""

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.vta.passes.long_windows import LongWindows

LANES, WIDTH = 4, 32


def windows(length: int, step: int, left: int, right: int) -> Graph:
    """A convolution of a row of one channel."""
    builder, rng = GraphBuilder(), np.random.default_rng(length)
    x = builder.input("x", TensorType((1, 1, WIDTH, 1), "int8"))
    weights = builder.constant("w", rng.integers(-128, 128, (3, 1, length, 1)).astype(np.int8))
    bias = builder.constant("b", rng.integers(-999, 999, 3).astype(np.int32))
    conv = Conv2d((1, step), (0, left, 0, right), 1, 7, -5)
    return builder.build((builder.node(conv, (x, weights, bias), "y", "conv"),))


@pytest.mark.parametrize(
    ("length", "left", "right", "pads"), [(8, 0, 0, (0, 0)), (7, 4, 3, (1, 1))]
)
def test_sums_stay(length: int, left: int, right: int, pads: tuple[int, int]) -> None:
    graph = windows(length, LANES, left, right)
    found = LongWindows(LANES).run(graph)
    operator = found.nodes[-1].operator
    assert isinstance(operator, Conv2d)
    assert (operator.strides, operator.pads[1], operator.pads[3]) == ((1, 1), *pads)
    values = np.random.default_rng(6).integers(-128, 128, (1, 1, WIDTH, 1)).astype(np.int8)
    each = (interpret(one, {"x": values})["y"] for one in (graph, found))
    np.testing.assert_array_equal(*each)


@pytest.mark.parametrize(
    ("length", "step", "left"),
    [(7, 4, 2), (8, 3, 0), (4, 4, 0), (16, 2, 0)],
    ids=["padding between steps", "rest", "one tap", "more words"],
)
def test_other_windows_stay(length: int, step: int, left: int) -> None:
    graph = windows(length, step, left, 0)
    assert LongWindows(LANES).run(graph) is graph
