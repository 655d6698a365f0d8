"""Convolutions by Winograd's tiles against direct sums in float64."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import Convolution
from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction
from dovetail.compiler.graph.operators.integer_winograd import WHOLE_POINTS
from dovetail.compiler.graph.operators.winograd import Winograd, interpolation, transforms
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.graph.winograd import choose_tile
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions
from dovetail.compiler.targets.cpu.segment import compile_segment, float_passes

F32 = DType.FLOAT32
PLAIN = Convolution((1, 1), (1, 1), ((1, 1), (1, 1)), (1, 1), 1, F32)


def fractions(*rows: str) -> tuple[tuple[Fraction, ...], ...]:
    return tuple(tuple(map(Fraction, row.split())) for row in rows)


def test_the_matrices_are_the_published_ones() -> None:
    """Lavin and Gray, CVPR 2016, sections 4.1 and 4.3, but for signs of pairs of rows."""
    two, four = transforms(2), interpolation(4, WHOLE_POINTS)
    assert two.input == fractions("-1 0 1 0", "0 1 1 0", "0 -1 1 0", "0 -1 0 1")
    assert four.input == fractions(
        "4 0 -5 0 1 0",
        "0 -4 -4 1 1 0",
        "0 4 -4 -1 1 0",
        "0 -2 -1 2 1 0",
        "0 2 -1 -2 1 0",
        "0 4 0 -5 0 1",
    )
    assert four.kernel == fractions(
        "1/4 0 0", "-1/6 -1/6 -1/6", "-1/6 1/6 -1/6", "1/24 1/12 1/6", "1/24 -1/12 1/6", "0 0 1"
    )
    assert four.output == fractions("1 1 1 1 1 0", "0 1 -1 2 -2 0", "0 1 1 4 4 0", "0 1 -1 8 -8 1")


@pytest.mark.parametrize("tile", [2, 4])
def test_the_transforms_are_exact_in_one_dimension(tile: int) -> None:
    matrices = transforms(tile)
    rng = np.random.default_rng(tile)
    x = [Fraction(int(each)) for each in rng.integers(-9, 10, tile + 2)]
    w = [Fraction(int(each)) for each in rng.integers(-9, 10, 3)]

    def times(matrix: Any, vector: list[Fraction]) -> list[Fraction]:
        return [
            sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in matrix
        ]

    products = [
        a * b for a, b in zip(times(matrices.kernel, w), times(matrices.input, x), strict=True)
    ]
    direct = [sum((w[k] * x[i + k] for k in range(3)), Fraction(0)) for i in range(tile)]
    assert times(matrices.output, products) == direct


def direct(x: NDArray[Any], w: NDArray[Any], pads: int) -> NDArray[np.float64]:
    """The convolution in float64."""
    wide = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (pads, pads), (pads, pads)])
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 3), axis=(2, 3))
    return np.asarray(np.einsum("ncijkl,ockl->noij", windows, w.astype(np.float64)))


def network(w: NDArray[Any], shape: tuple[int, ...], pads: int) -> Graph:
    """A convolution, a bias and a rectifier."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType(shape, F32))
    operator = Convolution((1, 1), (1, 1), ((pads, pads),) * 2, (1, 1), 1, F32)
    y = builder.node(operator, (x, builder.constant("w", w)), "y", "conv")
    bias = builder.constant("b", np.full((1, w.shape[0], 1, 1), 0.5, np.float32))
    y = builder.node(Binary(BinaryFunction.ADD), (y, bias), "y", "bias")
    zero = builder.constant("zero", np.float32(0))
    return builder.build([builder.node(Binary(BinaryFunction.MAX), (y, zero), "y", "relu")])


@settings(max_examples=12, deadline=None)
@given(
    size=st.tuples(st.integers(3, 23), st.integers(3, 23)),
    blocks=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    batch=st.integers(1, 2),
    pads=st.integers(0, 1),
    threads=st.sampled_from([1, 2]),
)
def test_any_size_is_the_direct_sum_but_for_rounding(
    size: tuple[int, int], blocks: tuple[int, int], batch: int, pads: int, threads: int
) -> None:
    rng = np.random.default_rng(size[0])
    shape = (batch, 16 * blocks[0], *size)
    x = rng.standard_normal(shape).astype(np.float32)
    w = rng.standard_normal((16 * blocks[1], shape[1], 3, 3)).astype(np.float32)
    segment = compile_segment(network(w, shape, pads), LlvmOptions(threads=threads))
    (found,) = segment.run({"x": x}).values()
    expected = np.maximum(direct(x, w, pads) + 0.5, 0)
    assert np.abs(found - expected).max() <= 3e-5 * np.abs(expected).max()


def test_a_large_layer_loses_little() -> None:
    """The points 1, -1, 2, -2 lose three times as much; direct sums, half."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, 128, 28, 28)).astype(np.float32)
    w = rng.standard_normal((128, 128, 3, 3)).astype(np.float32)
    segment = compile_segment(network(w, x.shape, 1))
    assert any(isinstance(node.operator, Winograd) for node in segment.graph.nodes)
    expected = np.maximum(direct(x, w, 1) + 0.5, 0)
    (found,) = segment.run({"x": x}).values()
    assert np.abs(found - expected).max() <= 4e-6 * np.abs(expected).max()


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("size", [(5, 9), (8, 8), (1, 2)])
def test_code_is_the_operators_numpy_meaning(tile: int, size: tuple[int, int]) -> None:
    operator = Winograd(tile, *size)
    rng = np.random.default_rng(3)
    spatial = tuple(tile * count + 2 for count in operator.tiles)
    x = rng.standard_normal((1, 2, *spatial, 16)).astype(np.float32)
    u = rng.standard_normal(((tile + 2) ** 2, 1, 2, 16, 16)).astype(np.float32)
    builder = GraphBuilder()
    names = (builder.input("x", TensorType(x.shape, F32)), builder.constant("u", u))
    graph = builder.build([builder.node(operator, names, "y", "winograd")])
    (found,) = compile_segment(graph).run({"x": x}).values()
    (expected,) = operator.evaluate([x, u])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_it_can_be_forbidden() -> None:
    graph = network(np.ones((64, 64, 3, 3), np.float32), (1, 64, 28, 28), 1)
    used = [
        any(isinstance(node.operator, Winograd) for node in float_passes(allowed).run(graph).nodes)
        for allowed in (True, False)
    ]
    assert used == [True, False]


@pytest.mark.parametrize(
    ("x", "weights", "tile"),
    [
        ((1, 64, 56, 56), (64, 64, 3, 3), 4),
        ((1, 128, 28, 28), (128, 128, 3, 3), 4),
        ((1, 64, 56, 56), (64, 64, 1, 1), None),
        ((1, 3, 56, 56), (64, 3, 3, 3), None),
    ],
)
def test_large_layers_are_tiled(
    x: tuple[int, ...], weights: tuple[int, ...], tile: int | None
) -> None:
    assert choose_tile(PLAIN, x, weights) == tile


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(GraphError, match=r"tile of 3 outputs; required one of \(2, 4\)"):
        Winograd(3, 8, 8)
    kinds = (TensorType((1, 1, 9, 10, 16), F32), TensorType((36, 1, 1, 16, 16), F32))
    with pytest.raises(GraphError, match=r"required \(10, 10\) positions"):
        Winograd(4, 8, 8).result(kinds)
