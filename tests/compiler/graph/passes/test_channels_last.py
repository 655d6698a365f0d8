"""Convolutions with their channels last: the graph's meaning stays, and no transpose is left."""

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import Convolution, PixelConvolution
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction, Cast
from dovetail.compiler.graph.operators.movement import Concatenate, Transpose
from dovetail.compiler.graph.operators.reductions import Reduce
from dovetail.compiler.graph.operators.windows import WindowFunction, WindowReduce
from dovetail.compiler.graph.passes.channels_last import ChannelsLast
from dovetail.compiler.graph.types import TensorType


def network(seed: int) -> Graph:
    """Two convolutions with biases, a pool, a residual sum or a concatenation, means."""
    rng = np.random.default_rng(seed)
    channels, wide = int(rng.integers(3, 20)), int(rng.integers(16, 40))
    builder = GraphBuilder()
    builder.input("x", TensorType((2, channels, 9, 8), "float16"))

    def convolved(x: str, size: int, stride: int, groups: int = 1) -> str:
        inputs = builder.types[x].shape[1] // groups
        w = rng.standard_normal((wide, inputs, size, size)).astype(np.float16)
        pads = ((size // 2, size // 2),) * 2
        operator = Convolution((stride,) * 2, (1, 1), pads, (1, 1), groups, "float32")
        made = builder.node(operator, (x, builder.constant("w", w)), "c", "c")
        bias = builder.constant("b", rng.standard_normal((wide, 1, 1)).astype(np.float32))
        added = builder.node(Binary(BinaryFunction.ADD), (made, bias), "a", "a")
        return builder.node(Cast("float16"), (added,), "h", "h")

    first = convolved("x", 3, int(rng.integers(1, 3)))
    pool = WindowReduce((2, 3), (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), WindowFunction.MAX)
    pooled = builder.node(pool, (first,), "p", "p")
    second = convolved(pooled, 1, 1, wide if seed % 2 else 1)
    if seed % 3:
        joined = builder.node(Binary(BinaryFunction.ADD), (first, second), "s", "s")
    else:
        joined = builder.node(Concatenate(1), (first, second), "s", "s")
    wider = builder.node(Cast("float32"), (joined,), "f", "f")
    builder.node(Reduce("sum", (2, 3), False), (wider,), "y", "y")
    return builder.build(("y",))


@pytest.mark.parametrize("seed", range(6))
def test_the_meaning_stays(seed: int) -> None:
    graph = network(seed)
    turned = ChannelsLast().run(graph)
    x = np.random.default_rng(seed).standard_normal(graph.types["x"].shape).astype(np.float16)
    np.testing.assert_allclose(
        run(turned, {"x": x})["y"], run(graph, {"x": x})["y"], rtol=1e-4, atol=1e-2
    )


@pytest.mark.parametrize("seed", range(6))
def test_one_transpose_of_the_input_is_left(seed: int) -> None:
    turned = ChannelsLast().run(network(seed))
    kinds = [type(node.operator) for node in turned.nodes]
    assert kinds.count(Transpose) == 1
    assert kinds.count(PixelConvolution) == 2
    assert Convolution not in kinds
    assert ChannelsLast().run(turned) is turned


def test_channels_fill_16_bytes() -> None:
    turned = ChannelsLast().run(network(1))
    found = [node for node in turned.nodes if isinstance(node.operator, PixelConvolution)]
    assert turned.types[found[0].inputs[0]].shape[-1] % 8 == 0


def test_a_graph_of_float32_stays() -> None:
    builder = GraphBuilder()
    builder.input("x", TensorType((1, 16, 8, 8), "float32"))
    w = builder.constant("w", np.ones((16, 16, 3, 3), np.float32))
    operator = Convolution((1, 1), (1, 1), ((1, 1), (1, 1)), (1, 1), 1, "float32")
    builder.node(operator, ("x", w), "y", "y")
    graph = builder.build(("y",))
    assert ChannelsLast().run(graph) is graph
