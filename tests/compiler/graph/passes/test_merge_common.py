"""Equal computations are made once, and mean the same."""

import numpy as np
import pytest

from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.elementwise import (
    Binary,
    BinaryFunction,
    Unary,
    UnaryFunction,
)
from dovetail.compiler.graph.passes.merge_common import LARGEST, MergeCommon
from dovetail.compiler.graph.types import TensorType

from ...random_graphs import random_graph

EXP, ADD = Unary(UnaryFunction.EXP), Binary(BinaryFunction.ADD)


class Build:
    """Nodes on one input ``x``, float32[4]."""

    def __init__(self) -> None:
        self.builder = GraphBuilder()
        self.x = self.builder.input("x", TensorType((4,), "float32"))

    def __call__(self, operator: object, *inputs: str) -> str:
        return self.builder.node(operator, inputs, "t", "n")  # type: ignore[arg-type]


def assert_same(before: Graph, after: Graph) -> None:
    given = {"x": np.linspace(-1, 1, 4, dtype=np.float32)}
    for name in before.outputs:
        assert np.array_equal(run(before, given)[name], run(after, given)[name])


def test_equal_nodes_become_one_and_so_do_those_that_read_them() -> None:
    b = Build()
    y = b(ADD, b(EXP, b(EXP, b.x)), b(EXP, b(EXP, b.x)))
    before = b.builder.build((y,))
    after = MergeCommon().run(before)
    assert [type(node.operator).__name__ for node in after.nodes] == ["Unary", "Unary", "Binary"]
    assert_same(before, after)


def test_equal_constants_become_one_and_zeros_of_two_signs_do_not() -> None:
    b = Build()
    one, same = (b.builder.constant("c", np.ones(4, np.float32)) for _ in range(2))
    zero = b.builder.constant("z", np.zeros(4, np.float32))
    negative = b.builder.constant("z", np.full(4, -0.0, np.float32))
    y = b(ADD, b(ADD, b.x, one), b(ADD, b.x, same))
    z = b(ADD, b(ADD, b.x, zero), b(ADD, b.x, negative))
    before = b.builder.build((y, z))
    after = MergeCommon().run(before)
    assert len(after.constants) == 3
    assert len(after.nodes) == 5
    assert_same(before, after)


def test_a_returned_tensor_keeps_its_name() -> None:
    b = Build()
    first, second = b(EXP, b.x), b(EXP, b.x)
    before = b.builder.build((first, second))
    assert MergeCommon().run(before) is before


def test_large_constants_are_left_alone() -> None:
    b = Build()
    size = LARGEST // 4 + 4
    large = [b.builder.constant("c", np.ones(size, np.float32)) for _ in range(2)]
    y = b(ADD, *large)
    assert len(MergeCommon().run(b.builder.build((y,))).constants) == 2


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs_mean_the_same(seed: int) -> None:
    graph = random_graph(seed, nodes=30)
    rng = np.random.default_rng(seed)
    inputs = {
        name: rng.standard_normal(graph.types[name].shape).astype(np.float32)
        for name in graph.inputs
    }
    merged = MergeCommon().run(graph)
    expected, found = run(graph, inputs), run(merged, inputs)
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name], expected[name])
