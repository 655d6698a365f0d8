"""Floats are stored in 16 bits where products are, and nowhere that would leave their range."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.groups import group_nodes
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import contract
from dovetail.compiler.graph.operators.elementwise import (
    Binary,
    BinaryFunction,
    Unary,
    UnaryFunction,
)
from dovetail.compiler.graph.operators.movement import Reshape
from dovetail.compiler.graph.operators.reductions import Reduce, ReduceFunction
from dovetail.compiler.graph.operators.rows import SoftmaxRows
from dovetail.compiler.graph.passes.narrow_floats import NarrowFloats
from dovetail.compiler.graph.passes.wide_sums import WideSums
from dovetail.compiler.graph.types import TensorType

RNG = np.random.default_rng(3)


class Build:
    """Nodes, and products with constant matrices, on an input ``x`` of float32[4, 6]."""

    def __init__(self) -> None:
        self.builder = GraphBuilder()
        self.x = self.builder.input("x", TensorType((4, 6), "float32"))

    def __call__(self, operator: object, *inputs: str, name: str = "t") -> str:
        return self.builder.node(operator, inputs, name, name)  # type: ignore[arg-type]

    def dense(self, x: str, columns: int, name: str) -> str:
        rows = self.builder.types[x].shape[-1]
        w = self.builder.constant("w", RNG.standard_normal((rows, columns)).astype(np.float32))
        types = self.builder.types[x], self.builder.types[w]
        operator = contract(types, ((0, 1), (1, 2)), (0, 2), DType.FLOAT32)
        return self(operator, x, w, name=name)

    def graph(self, *outputs: str) -> Graph:
        return self.builder.build(outputs)


def handed_on(graph: Graph) -> dict[str, DType]:
    """The types of what groups leave for others, by the names of the nodes that made it."""
    return {
        nodes[-1].origin: graph.types[nodes[-1].output].dtype
        for nodes in group_nodes(graph)
        if nodes[-1].output not in graph.outputs
    }


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
def test_products_read_and_leave_16_bits_and_outputs_stay(dtype: DType) -> None:
    b = Build()
    first = b(Unary(UnaryFunction.TANH), b.dense(b.x, 8, "first"), name="tanh")
    second = b.dense(first, 5, "second")
    before = b.graph(b(Binary(BinaryFunction.ADD), second, second, name="double"))
    after = NarrowFloats(dtype).run(before)
    assert {str(each.dtype) for each in after.constants.values()} == {str(dtype)}
    assert set(handed_on(after).values()) == {dtype}
    (name,) = after.outputs
    assert after.types[name] == before.types[name]
    x = RNG.standard_normal((4, 6)).astype(np.float32)
    found, want = (run(each, {"x": x})[name] for each in (after, before))
    assert (found != want).any()
    np.testing.assert_allclose(found, want, atol=0.02 if dtype is DType.FLOAT16 else 0.2)


def test_each_number_is_rounded_where_it_is_stored_and_sums_are_not() -> None:
    b = Build()
    name = b.dense(b.x, 8, "dense")
    graph = b.graph(name)
    x = RNG.standard_normal((4, 6)).astype(np.float32)
    rounded = (each.astype(np.float16).astype(np.float32) for each in (x, graph.constants["w"]))
    found = run(NarrowFloats(DType.FLOAT16).run(graph), {"x": x})[name]
    np.testing.assert_allclose(found, np.matmul(*rounded), rtol=1e-6, atol=1e-6)


def test_what_may_leave_the_range_of_16_bits_is_kept_in_float32() -> None:
    b = Build()
    y = b.dense(b.x, 8, "dense")
    squares = b(Binary(BinaryFunction.MUL), y, y, name="squares")
    power = b(Reduce(ReduceFunction.SUM, (1,), True), squares, name="power")
    weights = b(SoftmaxRows(), y, name="softmax")
    shares = b(Binary(BinaryFunction.DIV), squares, power, name="shares")
    before = b.graph(shares, b.dense(weights, 3, "last"))
    after = NarrowFloats(DType.FLOAT16).run(before)
    found = handed_on(after)
    assert found["dense"] is DType.FLOAT16
    assert found["power"] is DType.FLOAT32
    # A product reads the weights.
    assert found["softmax"] is DType.FLOAT16
    # Squares are up to about 1e6, and float16 ends at 65,504.
    x = 200 * RNG.standard_normal((4, 6)).astype(np.float32)
    want = run(before, {"x": x})[shares]
    np.testing.assert_allclose(run(after, {"x": x})[shares], want, atol=0.002)


def test_other_shapes_of_what_is_stored_cost_nothing() -> None:
    b = Build()
    flat = b(Reshape((8, 4)), b.dense(b.x, 8, "first"), name="flat")
    after = NarrowFloats(DType.FLOAT16).run(b.graph(b.dense(flat, 3, "second")))
    assert [[type(node.operator).__name__ for node in nodes] for nodes in group_nodes(after)] == [
        ["Cast"],
        ["Contract", "Cast"],
        ["Reshape"],
        ["Contract"],
    ]


def test_a_graph_without_products_stays() -> None:
    b = Build()
    graph = b.graph(b(SoftmaxRows(), b.x))
    assert NarrowFloats(DType.FLOAT16).run(graph) is graph


def test_matrices_become_rows_of_what_is_summed() -> None:
    b = Build()
    y = b.dense(b.x, 8, "dense")
    before = NarrowFloats(DType.FLOAT16).run(b.graph(y))
    after = WideSums().run(before)
    (product,) = (node for node in after.nodes if len(node.inputs) == 2)
    assert after.types[product.inputs[1]].shape == (8, 6)
    assert WideSums().run(after) is after
    x = RNG.standard_normal((4, 6)).astype(np.float32)
    np.testing.assert_allclose(
        run(after, {"x": x})[y], run(before, {"x": x})[y], rtol=1e-5, atol=1e-6
    )
