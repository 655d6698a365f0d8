"""Convolutions of bytes by tiles of whole numbers: every byte is that of direct sums."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dovetail.compiler.dtypes import DType
from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.contractions import Convolution
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Requantize
from dovetail.compiler.graph.operators.integer_winograd import IntegerWinograd, whole_transforms
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.graph.winograd import choose_whole_tile, whole_weights
from dovetail.compiler.targets.cpu.layouts.blocked_products import blocked_weights
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions
from dovetail.compiler.targets.cpu.llvm.target import CpuTarget, host_cpu
from dovetail.compiler.targets.cpu.segment import EXACT_PASSES, compile_segment

PLAIN = Convolution((1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1, DType.INT32)


def direct(x: NDArray[Any], w: NDArray[Any]) -> NDArray[np.int64]:
    """x: [N, C, H, W]; w: [O, C, 3, 3]."""
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64), (3, 3), axis=(2, 3))
    return np.asarray(np.einsum("ncijkl,ockl->noij", windows, w.astype(np.int64)))


def blocked(x: NDArray[Any]) -> NDArray[Any]:
    """[N, C, H, W] as [N, C / 16, H, W, 16]."""
    split = x.reshape(x.shape[0], -1, 16, *x.shape[2:])
    return np.ascontiguousarray(np.moveaxis(split, 2, -1))


def operator_graph(operator: IntegerWinograd, x: NDArray[Any], u: NDArray[Any]) -> Graph:
    builder = GraphBuilder()
    names = (builder.input("x", TensorType(x.shape, DType.UINT8)), builder.constant("u", u))
    return builder.build([builder.node(operator, names, "y", "winograd")])


def layer(size: tuple[int, int], channels: int, outputs: int, w: NDArray[Any], zero: int) -> Graph:
    """A convolution with borders of 1, requantised."""
    builder = GraphBuilder()
    x = builder.input("x", TensorType((1, *size, channels), "int8"))
    rng = np.random.default_rng(1)
    b = builder.constant("b", rng.integers(-5000, 5000, outputs).astype(np.int32))
    s = builder.constant("s", rng.uniform(1e-4, 1e-3, outputs).astype(np.float32))
    operator = Conv2d((1, 1), (1, 1, 1, 1), 1, zero)
    total = builder.node(operator, (x, builder.constant("w", w), b), "sum", "conv")
    return builder.build((builder.node(Requantize(-4, -100, 127), (total, s), "y", "conv"),))


def tiled(graph: Graph) -> bool:
    return any(isinstance(node.operator, IntegerWinograd) for node in EXACT_PASSES.run(graph).nodes)


@pytest.mark.parametrize("tile", [2, 4])
def test_the_matrices_are_whole_and_their_products_divisible(tile: int) -> None:
    whole = whole_transforms(tile)
    for matrix in (whole.matrices.input, whole.matrices.kernel, whole.matrices.output):
        assert all(each.denominator == 1 for row in matrix for each in row)
    assert whole.odd % 2 == 1
    assert whole.odd * whole.inverse % 2**32 == 1


@pytest.mark.parametrize("tile", [2, 4])
@pytest.mark.parametrize("extreme", [False, True])
def test_tiles_are_exact_up_to_the_limit(tile: int, extreme: bool) -> None:
    rng = np.random.default_rng(tile)
    operator = IntegerWinograd(tile, 2 * tile, tile)
    shape = (1, 64, *(tile * count + 2 for count in operator.tiles))
    if extreme:
        x = np.where(rng.integers(0, 2, shape) == 1, 255, 0).astype(np.uint8)
        w = np.where(rng.integers(0, 2, (16, 64, 3, 3)) == 1, 127, -128).astype(np.int8)
        x[:, :, :5, :5] = 255
        w[0], w[1] = 127, -128
    else:
        x = rng.integers(0, 256, shape, np.uint8)
        w = rng.integers(-128, 128, (16, 64, 3, 3)).astype(np.int8)
    expected = blocked(direct(x, w))
    assert np.abs(expected).max() < whole_transforms(tile).limit
    u = whole_weights(blocked_weights(w, 16), tile)
    (meant,) = operator.evaluate([blocked(x), u])
    np.testing.assert_array_equal(meant, expected)
    graph = operator_graph(operator, blocked(x), u)
    (found,) = compile_segment(graph).run({"x": blocked(x)}).values()
    np.testing.assert_array_equal(found, expected)


@settings(max_examples=12, deadline=None)
@given(
    size=st.tuples(st.integers(1, 19), st.integers(1, 19)),
    blocks=st.tuples(st.integers(1, 2), st.integers(1, 3)),
    threads=st.sampled_from([1, 2]),
    seed=st.integers(0, 99),
)
def test_any_size_is_the_direct_sum(
    size: tuple[int, int], blocks: tuple[int, int], threads: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    operator = IntegerWinograd(4, *size)
    shape = (1, 16 * blocks[0], *(4 * count + 2 for count in operator.tiles))
    x = rng.integers(0, 256, shape, np.uint8)
    w = rng.integers(-128, 128, (16 * blocks[1], shape[1], 3, 3)).astype(np.int8)
    graph = operator_graph(operator, blocked(x), whole_weights(blocked_weights(w, 16), 4))
    (found,) = compile_segment(graph, LlvmOptions(threads=threads)).run({"x": blocked(x)}).values()
    expected = blocked(direct(x, w))[:, :, : size[0], : size[1]]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("level", ["avx2", "avx512", "native"])
def test_layers_keep_their_bytes(level: str) -> None:
    missing = CpuTarget.at_level(level).features - host_cpu().features
    if missing:
        pytest.skip(f"this CPU lacks {', '.join(sorted(missing))}")
    rng = np.random.default_rng(5)
    w = rng.integers(-128, 128, (64, 3, 3, 64)).astype(np.int8)
    graph = layer((30, 26), 64, 64, w, 7)
    assert tiled(graph)
    x = rng.integers(-128, 128, (1, 30, 26, 64)).astype(np.int8)
    found = compile_segment(graph, LlvmOptions(level), EXACT_PASSES).run({"x": x})
    np.testing.assert_array_equal(found["y"], run(graph, {"x": x})["y"])


def test_sums_that_may_reach_the_limit_are_direct() -> None:
    w = np.full((64, 128, 3, 3), 100, np.int8)
    assert whole_transforms(4).limit > 255 * 100 * 9 * 128
    assert choose_whole_tile(PLAIN, (1, 128, 58, 58), w) == 4
    w[3] = 127
    assert whole_transforms(4).limit < 255 * 127 * 9 * 128
    assert choose_whole_tile(PLAIN, (1, 128, 58, 58), w) is None
    w[3] = -128
    assert choose_whole_tile(PLAIN, (1, 128, 58, 58), w) is None


def test_small_images_are_direct() -> None:
    w = np.ones((512, 512, 3, 3), np.int8)
    assert choose_whole_tile(PLAIN, (1, 512, 9, 9), w) is None


def test_other_operands_are_refused() -> None:
    with pytest.raises(GraphError, match="at least one row"):
        IntegerWinograd(4, 0, 3)
    x = np.zeros((1, 1, 6, 6, 16), np.uint8)
    with pytest.raises(GraphError, match="required weights"):
        operator_graph(IntegerWinograd(4, 4, 4), x, np.zeros((36, 1, 1, 16, 16, 1), np.int16))
    with pytest.raises(GraphError, match="int16 of 6"):
        operator_graph(IntegerWinograd(4, 4, 4), x, np.zeros((36, 1, 1, 8, 16, 2), np.int8))
    with pytest.raises(GraphError, match="positions"):
        operator_graph(IntegerWinograd(4, 5, 4), x, np.zeros((36, 1, 1, 8, 16, 2), np.int16))
