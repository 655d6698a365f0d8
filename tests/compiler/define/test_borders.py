"""Borders around results: every element once, whatever lies at the ends of the dimensions."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.define.borders import border
from dovetail.compiler.define.operand import Scope
from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.groups import group_nodes
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.contractions import contract
from dovetail.compiler.graph.operators.elementwise import (
    Binary,
    BinaryFunction,
    Unary,
    UnaryFunction,
)
from dovetail.compiler.graph.operators.movement import PadTensor
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.expressions import Buffer, Constant, Select
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.ir import Function, Update
from dovetail.compiler.loops.traverse import expressions, walk
from dovetail.compiler.loops.verify import verify
from dovetail.compiler.schedule.rules.cpu.machine import Machine
from dovetail.compiler.targets.cpu.llvm.compile import compile_functions
from dovetail.compiler.targets.cpu.recorded import schedule_kernel

F32 = DType.FLOAT32
PADS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=4)


@given(PADS, st.lists(st.integers(1, 3), min_size=4, max_size=4))
def test_all_outside_is_written_and_nothing_inside(
    pads: list[tuple[int, int]], sizes: list[int]
) -> None:
    inner = sizes[: len(pads)]
    shape = tuple(size + sum(own) for size, own in zip(inner, pads, strict=True))
    buffer = Buffer("y", shape, F32)
    body = border(buffer, pads, Constant(7.0, F32), Scope())
    code = compile_functions([Function("f", (), (buffer,), body)])
    y = np.zeros(shape, np.float32)
    code.run("f", [], [y])
    inside = [slice(low, low + size) for (low, _), size in zip(pads, inner, strict=True)]
    expected = np.full(shape, 7, np.float32)
    expected[tuple(inside)] = 0
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(("before", "after"), list(product([(0, 0), (2, 1)], [(1, 0), (3, 3)])))
def test_a_product_inside_a_border_is_one_function(
    before: tuple[int, int], after: tuple[int, int]
) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((5, 7), (7, 19)))
    builder = GraphBuilder()
    x = builder.input("x", TensorType(a.shape, F32))
    w, fill = builder.constant("w", b), builder.constant("fill", np.float32(-3))
    kinds = (builder.types[x], builder.types[w])
    y = builder.node(contract(kinds, ((0, 1), (1, 2)), (0, 2), F32), (x, w), "y", "y")
    y = builder.node(Unary(UnaryFunction.NEG), (y,), "n", "n")
    y = builder.node(PadTensor(before, after), (y, fill), "p", "p")
    graph = builder.build((y,))
    kernel = schedule_kernel(graph, graph.nodes, Machine())
    verify(kernel.function)
    assert any(isinstance(each, Update) for each in walk(kernel.function.body))
    arrays = {"x": a, "w": b}
    given_arrays = {f"in{n}": arrays[name] for n, name in enumerate(kernel.definition.inputs)}
    expected = np.pad(-(a @ b), list(zip(before, after, strict=True)), constant_values=-3)
    np.testing.assert_array_equal(interpret(kernel.function, given_arrays)["out0"], expected)
    (found,) = compile_functions([kernel.function]).run("group", given_arrays)
    np.testing.assert_array_equal(found, expected)


@given(PADS, st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_elements_inside_a_border_are_stored_where_they_belong(
    pads: list[tuple[int, int]], sizes: list[int]
) -> None:
    """``x * tanh(x)`` inside of ones: no element is chosen by a condition."""
    builder = GraphBuilder()
    shape = tuple(sizes[: len(pads)])
    x = builder.input("x", TensorType(shape, "float32"))
    y = builder.node(Unary(UnaryFunction.TANH), (x,), "t", "t")
    y = builder.node(Binary(BinaryFunction.MUL), (x, y), "m", "m")
    fill = builder.constant("fill", np.ones((), np.float32))
    before, after = zip(*pads, strict=True)
    graph = builder.build((builder.node(PadTensor(before, after), (y, fill), "p", "p"),))
    ((*nodes,),) = group_nodes(graph)
    function = schedule_kernel(graph, nodes, Machine()).function
    verify(function)
    assert not any(isinstance(each, Select) for each in expressions(function.body))
    given_x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    found = interpret(function, {"in0": given_x})["out0"]
    expected = np.pad(given_x * np.tanh(given_x), pads, constant_values=1)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
