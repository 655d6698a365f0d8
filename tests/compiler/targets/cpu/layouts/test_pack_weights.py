"""Packed weights and turned operands give the same results."""

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.contractions import Contract, contract
from dovetail.compiler.graph.operators.movement import Transpose
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.targets.cpu.layouts.pack_weights import PackWeights
from dovetail.compiler.targets.cpu.layouts.transpose_operands import TransposeOperands

F32 = DType.FLOAT32


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("columns", [12, 8, 10, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_packing_changes_no_result(
    columns: int, transposed: bool, batch: tuple[int, ...], left: bool
) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-4, 5, (*batch, 5, 6)).astype(np.float32)
    w = rng.integers(-4, 5, (*batch, columns, 6) if transposed else (*batch, 6, columns))
    labels = [[*range(3, 3 + len(batch)), 0, 1], [*range(3, 3 + len(batch)), 1, 2]]
    if transposed:
        labels[1][-2:] = [2, 1]
    builder = GraphBuilder()
    builder.input("x", TensorType(x.shape, F32))
    constant = builder.constant("w", w.astype(np.float32))
    names = ["x", constant]
    if left:
        names, labels = names[::-1], labels[::-1]
    kinds = [builder.types[name] for name in names]
    operator = contract(kinds, labels, [*range(3, 3 + len(batch)), 0, 2], F32)
    graph = builder.build((builder.node(operator, tuple(names), "y", "product"),))
    packed = PackWeights(block=4).run(graph)
    assert (packed is graph) == (not transposed and columns in (10, 4))
    np.testing.assert_array_equal(run(packed, {"x": x})["y"], run(graph, {"x": x})["y"])
    assert PackWeights(block=4).run(packed) is packed


def test_steps_of_the_output_are_those_of_a_dense_dimension() -> None:
    axis = ((0, 4), (1, 1))
    operand = (((0, 1),), ((1, 1),))
    operator = Contract((2, 4), (operand,), (axis,), F32)
    assert operator.result((TensorType((2, 4), F32),)) == (TensorType((8,), F32),)
    with pytest.raises(GraphError, match=r"required steps \[4, 1\] in"):
        Contract((2, 4), (operand,), (((0, 5), (1, 1)),), F32)


@pytest.mark.parametrize("rows", [3, 9])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_operands_that_are_used_often_are_turned(rows: int, batch: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    kinds = [TensorType((*batch, size, 4), F32) for size in (rows, 10)]
    builder = GraphBuilder()
    names = tuple(builder.input(name, kind) for name, kind in zip("xy", kinds, strict=True))
    labels = [*range(3, 3 + len(batch))]
    operator = contract(kinds, [[*labels, 0, 1], [*labels, 2, 1]], [*labels, 0, 2], F32)
    graph = builder.build((builder.node(operator, names, "z", "product"),))
    turned = TransposeOperands().run(graph)
    assert [type(node.operator) for node in turned.nodes[:-1]] == [Transpose] * (rows > 8)
    given = {
        name: rng.integers(-4, 5, kind.shape).astype(np.float32)
        for name, kind in zip(names, kinds, strict=True)
    }
    np.testing.assert_array_equal(run(turned, given)["z"], run(graph, given)["z"])
    assert TransposeOperands().run(turned) is turned


@pytest.mark.parametrize("inputs", [8, 6])
def test_bytes_are_packed_for_dot_products(inputs: int) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (3, inputs)).astype(np.uint8)
    builder = GraphBuilder()
    builder.input("x", TensorType(x.shape, DType.UINT8))
    w = builder.constant("w", rng.integers(-128, 128, (inputs, 32)).astype(np.int8))
    kinds = [builder.types[name] for name in ("x", w)]
    operator = contract(kinds, ((0, 1), (1, 2)), (0, 2), DType.INT32)
    graph = builder.build((builder.node(operator, ("x", w), "y", "product"),))
    packed = PackWeights().run(graph)
    (constant,) = packed.constants.values()
    assert constant.shape == ((2, 2, 16, 4) if inputs == 8 else (6, 32))
    np.testing.assert_array_equal(run(packed, {"x": x})["y"], run(graph, {"x": x})["y"])
    assert PackWeights().run(packed) is packed
