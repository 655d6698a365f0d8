"""Products of activations less a zero point with constant weights: products of bytes with the same
sums.  And transposed convolutions, as convolutions with the same sums."""

from typing import Any

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import Contract, Convolution, contract
from dovetail.compiler.graph.operators.elementwise import (
    Binary,
    BinaryFunction,
    Bitcast,
    Cast,
)
from dovetail.compiler.graph.operators.transposed import TransposedConvolution
from dovetail.compiler.graph.passes.byte_products import ByteProducts
from dovetail.compiler.graph.passes.expand_quantization import ExpandQuantization
from dovetail.compiler.graph.types import TensorType

RNG = np.random.default_rng(7)
ONES, NONE = (1, 1), ((0, 0), (0, 0))


def layer(
    operator: Convolution | Contract,
    shape: tuple[int, ...],
    weights: np.ndarray,
    dtype: str = "int8",
    zero: Any = 3,
) -> Graph:
    """``(int32(x) - zero)`` times ``weights``."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType(shape, dtype))
    own = builder.node(Cast(DType.INT32), (x,), "wide", "n")
    if zero is not None:
        point = builder.constant("zero", np.asarray(zero, np.int32))
        own = builder.node(Binary(BinaryFunction.SUB), (own, point), "own", "n")
    w = builder.constant("w", weights.astype(np.int32))
    return builder.build((builder.node(operator, (own, w), "y", "n"),))


def convolution(**changes: Any) -> Convolution:
    fields = {"strides": (2, 1), "dilations": ONES, "pads": ((1, 0), (2, 1)), "expansions": ONES}
    return Convolution(**{**fields, "groups": 1, "dtype": DType.INT32, **changes})


def matrix(rows: int = 5, turned: bool = False) -> Contract:
    kinds = TensorType((rows, 6), "int32"), TensorType((4, 6) if turned else (6, 4), "int32")
    return contract(kinds, ((0, 1), (2, 1) if turned else (1, 2)), (0, 2), DType.INT32)


def bytes_like(graph: Graph) -> dict[str, np.ndarray]:
    kind = graph.types["x"]
    info = np.iinfo(str(kind.dtype))
    return {"x": RNG.integers(info.min, info.max + 1, kind.shape).astype(str(kind.dtype))}


def products(graph: Graph) -> list[str]:
    """Element types of what the products take."""
    return [
        str(graph.types[node.inputs[0]].dtype)
        for node in graph.nodes
        if isinstance(node.operator, Convolution | Contract)
    ]


@pytest.mark.parametrize(
    ("dtype", "zero", "raised"),
    [
        (*pair, raised)
        for pair in (("int8", 3), ("int8", -128), ("int8", None), ("uint8", 255), ("uint8", None))
        for raised in (True, False)
    ],
)
def test_sums_stay_and_operands_are_bytes(dtype: str, zero: int | None, raised: bool) -> None:
    weights = RNG.integers(-128, 128, (8, 8, 3, 2))
    square = RNG.integers(-128, 128, (6, 4))
    for graph, by_rows in (
        (layer(convolution(), (2, 8, 5, 6), weights, dtype, zero), False),
        (layer(matrix(), (5, 6), square, dtype, zero), False),
        (layer(matrix(), (5, 6), square, dtype, zero), True),
        (layer(matrix(turned=True), (5, 6), square.T, dtype, zero), True),
    ):
        found, given = ByteProducts(raised, by_rows).run(graph), bytes_like(graph)
        wanted = "uint8" if raised else dtype
        assert products(found) == [wanted]
        assert any(isinstance(n.operator, Bitcast) for n in found.nodes) == (wanted != dtype)
        x = run(graph, given)["y"]
        np.testing.assert_array_equal(run(found, given)[found.outputs[0]], x)
        if by_rows or graph.types["x"].rank == 2:
            own = given["x"].astype(np.int64) - (zero or 0)
            np.testing.assert_array_equal(x, own @ square)
    assert ByteProducts().raised


EIGHT = RNG.integers(-9, 9, (8, 8, 1, 1))


@pytest.mark.parametrize(
    ("graph", "changes"),
    [
        (lambda: layer(convolution(), (1, 8, 3, 3), EIGHT), True),
        (lambda: layer(convolution(), (1, 8, 3, 3), EIGHT[:7]), False),
        (lambda: layer(convolution(), (1, 7, 3, 3), EIGHT[:, :7]), False),
        (lambda: layer(convolution(groups=2), (1, 16, 3, 3), EIGHT), False),
        (lambda: layer(convolution(expansions=(2, 1)), (1, 8, 3, 3), EIGHT), False),
        (lambda: layer(convolution(), (1, 8, 3, 3), EIGHT, zero=np.full((8, 1, 1), 3)), False),
        (lambda: layer(convolution(), (1, 8, 3, 3), EIGHT, dtype="int16"), False),
        (lambda: layer(matrix(), (5, 6), np.full((6, 4), 127)), True),
        (lambda: layer(matrix(), (5, 6), np.full((6, 4), 128)), False),
        (lambda: layer(matrix(), (5, 6), np.full((6, 4), -128)), True),
        (lambda: layer(matrix(), (5, 6), np.full((6, 4), -129)), False),
        (lambda: layer(matrix(turned=True), (5, 6), np.ones((4, 6))), False),
    ],
)
def test_other_products_stay(graph: Any, changes: bool) -> None:
    made = graph()
    assert (ByteProducts().run(made) is not made) == changes


@pytest.mark.parametrize(
    ("strides", "dilations", "pads", "added", "groups"),
    [
        ((2, 3), ONES, ((1, 0), (0, 2)), (1, 0), 1),
        ((2, 1), ONES, ((0, 0), (-1, 1)), (0, 0), 2),
        ((1, 1), ONES, ((1, 1), (0, 0)), (0, 0), 1),
        ((2, 2), (2, 1), NONE, (0, 1), 3),
        ((4, 1), ONES, NONE, (2, 0), 1),
    ],
)
def test_transposed_convolutions_add_up_kernels(
    strides: tuple[int, int],
    dilations: tuple[int, int],
    pads: tuple[tuple[int, int], ...],
    added: tuple[int, int],
    groups: int,
) -> None:
    builder, (kernel_h, kernel_w) = GraphBuilder(), (3, 2)
    x = RNG.integers(-9, 9, (2, 6, 3, 4)).astype(np.int32)
    w = RNG.integers(-9, 9, (6, 5, kernel_h, kernel_w)).astype(np.int32)
    operator = TransposedConvolution(strides, dilations, pads, added, groups, DType.INT32)
    name = builder.input("x", TensorType(x.shape, "int32"))
    graph = builder.build((builder.node(operator, (name, builder.constant("w", w)), "y", "n"),))
    whole = np.zeros((2, 5 * groups, 40, 40), np.int64)
    for c, row, column, i, j in np.ndindex(6, 3, 4, kernel_h, kernel_w):
        g = c // (6 // groups)
        place = 9 + row * strides[0] + i * dilations[0], 9 + column * strides[1] + j * dilations[1]
        whole[:, 5 * g : 5 * g + 5, *place] += x[:, c, row, column, None] * w[c, :, i, j]
    kind = graph.types["y"]
    sides = [
        slice(9 + first, 9 + first + n) for (first, _), n in zip(pads, kind.shape[2:], strict=True)
    ]
    for each in (graph, ExpandQuantization().run(graph)):
        found = run(each, {"x": x})[each.outputs[0]]
        np.testing.assert_array_equal(found, whole[:, :, sides[0], sides[1]])
    assert kind.shape[2] == 2 * strides[0] + 2 * dilations[0] + 1 - sum(pads[0]) + added[0]
