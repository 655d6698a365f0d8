"""Loops of contractions against their NumPy meaning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.contractions import (
    Axis,
    Contract,
    Convolution,
    Determinant,
    contract,
)
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.loops.interpreter import interpret
from dovetail.compiler.loops.intrinsic import PREFETCH
from dovetail.compiler.loops.ir import Invoke
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.schedule.rules.cpu.machine import Machine
from dovetail.compiler.schedule.rules.cpu.tiling import choose_tiling
from dovetail.compiler.targets.cpu.llvm.compile import compile_functions
from dovetail.compiler.targets.cpu.recorded import schedule_kernel

from .products import products
from .single import interpreted

RNG = np.random.default_rng(0)
F32 = DType.FLOAT32


def numbers(*shape: int) -> NDArray[np.float32]:
    """Small integers: sums of their products are exact."""
    return RNG.integers(-4, 5, shape).astype(np.float32)


def matrices(m: int, k: int, n: int) -> Contract:
    """The product of two matrices."""
    kinds = (TensorType((m, k), F32), TensorType((k, n), F32))
    return contract(kinds, ((0, 1), (1, 2)), (0, 2), F32)


@settings(max_examples=25, deadline=None)
@given(m=st.integers(0, 20), k=st.integers(0, 9), n=st.integers(1, 40))
def test_a_product_of_matrices_is_numpys(m: int, k: int, n: int) -> None:
    a, b = numbers(m, k), numbers(k, n)
    (found,) = interpreted(matrices(m, k, n), a, b)
    np.testing.assert_array_equal(found, a @ b)


@pytest.mark.parametrize(("vector_bytes", "registers"), [(64, 32), (32, 16), (16, 16)])
def test_tiles_fit_the_registers(vector_bytes: int, registers: int) -> None:
    machine = Machine(vector_bytes, registers)
    for m, n in ((1, 1000), (7, 64), (128, 768), (196, 256), (3, 5)):
        tiling = choose_tiling(products(matrices(m, 64, n)), machine)
        rows, columns = tiling.tiles.get("o0", 1), tiling.tiles.get("o1", 1)
        assert tiling.lanes == min(vector_bytes // 4, n)
        assert rows * columns + min(rows, columns) + 1 <= machine.registers


def test_lanes_may_lie_along_the_sum() -> None:
    a, b = numbers(3, 37), numbers(5, 37)
    kinds = (TensorType(a.shape, F32), TensorType(b.shape, F32))
    (found,) = interpreted(contract(kinds, ((0, 1), (2, 1)), (0, 2), F32), a, b)
    np.testing.assert_array_equal(found, a @ b.T)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_contraction_is_einsum(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    labels = range(len(sizes))
    some = st.lists(st.sampled_from(list(labels)), unique=True, min_size=1)
    operands = data.draw(st.lists(some, min_size=1, max_size=3))
    used = sorted({label for own in operands for label in own})
    output = data.draw(st.permutations(used))[: data.draw(st.integers(0, len(used)))]
    arrays = [numbers(*(sizes[label] for label in own)) for own in operands]
    kinds = [TensorType(array.shape, F32) for array in arrays]
    operator = contract(kinds, operands, output, F32)
    text = ",".join("".join(chr(97 + label) for label in own) for own in operands)
    expected = np.einsum(f"{text}->{''.join(chr(97 + label) for label in output)}", *arrays)
    (found,) = interpreted(operator, *arrays)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(operator.evaluate(arrays)[0], expected)


def test_integers_wrap_as_the_accumulator_does() -> None:
    a = np.full((2, 3), 127, np.int8)
    kinds = (TensorType((2, 3), DType.INT8), TensorType((3, 2), DType.INT8))
    operator = contract(kinds, ((0, 1), (1, 2)), (0, 2), DType.INT32)
    (found,) = interpreted(operator, a, a.reshape(3, 2))
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, np.full((2, 2), 3 * 127 * 127))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("swapped", [False, True])
def test_packed_bytes_become_dot_products(dtype: type, swapped: bool) -> None:
    """Labels: row, group of 4 to sum, place in it, block of columns, place in it."""
    limits = np.iinfo(dtype)
    x = RNG.integers(limits.min, limits.max + 1, (5, 12)).astype(dtype)
    w = RNG.integers(-128, 128, (2, 3, 16, 4)).astype(np.int8)
    x_axes: tuple[Axis, ...] = (((0, 1),), ((1, 4), (2, 1)))
    w_axes: tuple[Axis, ...] = (((3, 1),), ((1, 1),), ((4, 1),), ((2, 1),))
    operands = (w_axes, x_axes) if swapped else (x_axes, w_axes)
    output: tuple[Axis, ...] = (((0, 1),), ((3, 16), (4, 1)))
    operator = Contract((5, 3, 4, 2, 16), operands, output, DType.INT32)
    given = (w, x) if swapped else (x, w)
    builder = GraphBuilder()
    for name, array in zip("ab", given, strict=True):
        builder.input(name, TensorType(array.shape, str(array.dtype)))
    graph = builder.build((builder.node(operator, ("a", "b"), "y", "product"),))
    function = schedule_kernel(graph, graph.nodes, Machine()).function
    assert any(isinstance(stmt, Invoke) for stmt in walk(function.body))
    (found,) = interpreted(operator, *given)
    columns = w.transpose(0, 2, 1, 3).reshape(32, 12).astype(np.int32)
    np.testing.assert_array_equal(found, x.astype(np.int32) @ columns.T)


def test_operands_that_do_not_fit_are_refused() -> None:
    operator = matrices(2, 3, 4)
    with pytest.raises(GraphError, match=r"Contract: found float32\[2, 2\], required at least"):
        operator.result((TensorType((2, 2), F32), TensorType((3, 4), F32)))
    with pytest.raises(GraphError, match="sizes 3 and 2 of one label; required equal"):
        contract((TensorType((2, 3), F32), TensorType((2, 4), F32)), ((0, 1), (1, 2)), (0,), F32)
    with pytest.raises(GraphError, match="required labels below 1"):
        Contract((2,), ((((1, 1),),),), (((0, 1),),), F32)
    convolution = Convolution((1,), (1,), ((0, 0),), (1,), 2, F32)
    with pytest.raises(GraphError, match="required 4 channels, and outputs a multiple of 2"):
        convolution.result((TensorType((1, 3, 5), F32), TensorType((2, 2, 3), F32)))
    with pytest.raises(GraphError, match="a window of 3 on 2; required at most that"):
        convolution.result((TensorType((1, 4, 2), F32), TensorType((2, 2, 3), F32)))
    with pytest.raises(GraphError, match="required square float matrices"):
        Determinant().result((TensorType((2, 3), F32),))


STREAMING = Machine(streamed_bytes=1)
"""Every operand is too large for its cache."""


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(1, 20), inputs=st.integers(1, 3), outputs=st.integers(1, 7))
def test_streamed_weights_change_no_result(rows: int, inputs: int, outputs: int) -> None:
    x, w = numbers(inputs, rows, 16), numbers(outputs, inputs, 16, 16)
    kinds = (TensorType(x.shape, F32), TensorType(w.shape, F32))
    operator = contract(kinds, ((0, 1, 2), (3, 0, 2, 4)), (3, 1, 4), F32)
    builder = GraphBuilder()
    names = [builder.input(name, kind) for name, kind in zip("xw", kinds, strict=True)]
    graph = builder.build(tuple(builder.node_outputs(operator, tuple(names), "y", "test")))
    function = schedule_kernel(graph, graph.nodes, STREAMING).function
    asked = {each.intrinsic for each in walk(function.body) if isinstance(each, Invoke)}
    assert asked == ({PREFETCH} if outputs > 1 else set())
    expected = np.einsum("crk,ockl->orl", x, w)
    given = {"in0": x, "in1": w}
    np.testing.assert_array_equal(interpret(function, given)["out0"], expected)
    (found,) = compile_functions([function]).run(function.name, given)
    np.testing.assert_array_equal(found, expected)


def test_weights_that_come_from_memory_are_read_in_one_pass() -> None:
    """Sixteen positions, weights of 256 x 256 at 36 places: those of the tile fill the cache."""

    def axes(*labels: int) -> tuple[Axis, ...]:
        return tuple(((label, 1),) for label in labels)

    sizes = (36, 16, 16, 16, 16, 16)
    operator = Contract(sizes, (axes(0, 4, 2, 5), axes(0, 1, 4, 5, 3)), axes(0, 1, 2, 3), F32)
    tiles = choose_tiling(products(operator), Machine()).tiles
    assert tiles["o2"] >= 12
    assert choose_tiling(products(operator), Machine(memory_bytes=1000)).tiles["o2"] < 12


def test_large_depthwise_layers_are_tiled() -> None:
    """Both operands have the lanes: what is read once anyway does not keep columns apart."""

    def one(label: int) -> tuple[tuple[int, int], ...]:
        return ((label, 1),)

    x = (one(0), one(1), ((2, 1), (5, 1)), ((3, 1), (6, 1)), one(4))
    w = (one(1), one(5), one(6), one(4))
    output = tuple(map(one, range(5)))
    operator = Contract((1, 9, 56, 56, 16, 3, 3), (x, w), output, F32)
    assert choose_tiling(products(operator), Machine()).tiles["o3"] >= 8
