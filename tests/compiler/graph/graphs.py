"""Small graphs for tests of the passes."""

import numpy as np
from numpy.typing import NDArray

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Requantize
from dovetail.compiler.graph.types import TensorType


def image_builder(shape: tuple[int, ...] = (1, 6, 5, 3)) -> GraphBuilder:
    """A builder with one int8 input, ``x``."""
    builder = GraphBuilder()
    builder.input("x", TensorType(shape, "int8"))
    return builder


def convolution(
    builder: GraphBuilder, x: str, outputs: int = 4, zero_point: int = 5, low: int = -128
) -> str:
    """A 3x3 convolution of ``x`` with random weights, requantised."""
    rng = np.random.default_rng(outputs)
    channels = builder.types[x].shape[3]
    weights = rng.integers(-127, 128, (outputs, 3, 3, channels)).astype(np.int8)
    w = builder.constant("w", weights)
    b = builder.constant("b", rng.integers(-500, 500, outputs).astype(np.int32))
    scale = builder.constant("s", rng.uniform(0.001, 0.01, outputs).astype(np.float32))
    operator = Conv2d((1, 1), (1, 1, 1, 1), 1, zero_point)
    total = builder.node(operator, (x, w, b), "sum", "conv")
    return builder.node(Requantize(-4, low, 127), (total, scale), "y", "conv")


def random_input(graph: Graph, seed: int = 0) -> dict[str, NDArray[np.int8]]:
    """Random int8 for every input."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.integers(-128, 128, graph.types[name].shape).astype(np.int8)
        for name in graph.inputs
    }


def assert_same_meaning(before: Graph, after: Graph) -> None:
    """Both graphs give the same outputs, under the same names."""
    assert before.inputs == after.inputs
    assert before.outputs == after.outputs
    for seed in range(3):
        x = random_input(before, seed)
        wanted, found = run(before, x), run(after, x)
        for name in before.outputs:
            np.testing.assert_array_equal(found[name], wanted[name])


def kinds(graph: Graph) -> list[str]:
    """The operators' names, in order."""
    return [type(node.operator).__name__ for node in graph.nodes]
