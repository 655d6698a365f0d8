"""The verifier accepts what the importer makes and refuses what no backend can run."""

import numpy as np
import pytest

from dovetail.compiler.errors import GraphError, ModelError
from dovetail.compiler.graph.bounds import accumulator_bound, check_accumulator
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.operators.integer.products import Dense
from dovetail.compiler.graph.operators.integer.values import Lookup, Requantize
from dovetail.compiler.graph.operators.movement import Reshape
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.graph.verify import verify

from .graphs import convolution, image_builder


def dense(bias: int, scale: float = 0.1) -> Graph:
    builder = image_builder((1, 4))
    w = builder.constant("w", np.full((1, 4), -128, np.int8))
    b = builder.constant("b", np.array([bias], np.int32))
    s = builder.constant("s", np.array([scale], np.float32))
    total = builder.node(Dense(-128), ("x", w, b), "sum", "fc")
    y = builder.node(Requantize(0, -128, 127), (total, s), "y", "fc")
    return builder.build((y,))


def test_graphs_without_overflow_are_accepted() -> None:
    builder = image_builder()
    verify(builder.build((convolution(builder, "x"),)))
    verify(dense(bias=2**31 - 1 - 4 * 128 * 255))


def test_an_accumulator_that_could_overflow_is_refused() -> None:
    with pytest.raises(GraphError, match=r"node 'fc': an accumulator can reach 2147483648; int32"):
        verify(dense(bias=2**31 - 4 * 128 * 255))
    with pytest.raises(ModelError, match=r"node 'fc': an accumulator can reach"):
        check_accumulator(np.full((1, 4), -128), np.array([2**31 - 4 * 128 * 255]), -128, "fc")


def test_the_bound_is_reached() -> None:
    weights, bias = np.full((1, 4), -128, np.int8), np.array([-7], np.int32)
    x = np.full((1, 4), 127, np.int8)
    found = int(Dense(-128).evaluate([x, weights, bias])[0][0, 0])
    assert -found == accumulator_bound(weights, bias, -128)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_that_is_not_positive_is_refused(scale: float) -> None:
    with pytest.raises(GraphError, match=r"node 'fc': a scale of .*; required finite scales"):
        verify(dense(0, scale))


def test_a_computed_table_is_refused() -> None:
    builder = image_builder((1, 256))
    table = builder.node(Reshape((256,)), ("x",), "t", "n")
    y = builder.node(Lookup(), ("x", table), "y", "act")
    with pytest.raises(
        GraphError, match=r"node 'act': input 1 \('t'\) is computed; required a con"
    ):
        verify(builder.build((y,)))


def test_a_writable_constant_is_refused() -> None:
    graph = Graph((), ("c",), (), {"c": np.zeros(1, np.int8)}, {"c": TensorType((1,), "int8")})
    with pytest.raises(GraphError, match="constant 'c' can be written"):
        verify(graph)


def test_a_graph_without_outputs_is_refused() -> None:
    with pytest.raises(GraphError, match="the graph has no outputs"):
        verify(image_builder().build(()))
