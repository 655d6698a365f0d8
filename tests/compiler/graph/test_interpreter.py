"""The operators' meanings, held to loops written out and to exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.interpreter import run
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Add, Requantize
from dovetail.compiler.graph.operators.integer.windows import AveragePool2d, MaxPool2d, Pad
from dovetail.compiler.graph.operators.movement import Reshape

from .graphs import image_builder


@given(
    st.integers(0, 2**32 - 1),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(*[st.integers(0, 2)] * 4),
    st.booleans(),
    st.integers(-128, 127),
)
def test_a_convolution_is_the_loop_nest(
    seed: int,
    kernel: tuple[int, int],
    pads: tuple[int, int, int, int],
    depthwise: bool,
    zero_point: int,
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(-128, 128, (1, 4, 5, 3)).astype(np.int8)
    outputs, per_group = (3, 1) if depthwise else (2, 3)
    w = rng.integers(-128, 128, (outputs, *kernel, per_group)).astype(np.int8)
    b = rng.integers(-1000, 1000, outputs).astype(np.int32)
    operator = Conv2d((2, 1), pads, 3 if depthwise else 1, zero_point)
    (found,) = operator.evaluate([x, w, b])
    top, left, _, _ = pads
    for _, oy, ox, o in np.ndindex(*found.shape):
        total = int(b[o])
        for ky, kx, c in np.ndindex(*kernel, per_group):
            y, z = 2 * oy + ky - top, ox + kx - left
            if 0 <= y < 4 and 0 <= z < 5:
                channel = o if depthwise else c
                total += (int(x[0, y, z, channel]) - zero_point) * int(w[o, ky, kx, c])
        assert found[0, oy, ox, o] == total


@given(st.integers(-(2**31), 2**31 - 1), st.floats(2.0**-24, 1.0, width=32), st.integers(-128, 127))
def test_requantisation_rounds_every_step_to_float32(acc: int, scale: float, zero: int) -> None:
    product = np.float32(np.float32(acc) * np.float32(scale))
    nearest = round(Fraction(float(product)))
    operands = [np.array([acc], np.int32), np.array([scale], np.float32)]
    (found,) = Requantize(zero, -100, 90).evaluate(operands)
    assert found[0] == max(-100, min(90, nearest + zero))


@pytest.mark.parametrize("unsigned", [False, True])
def test_a_sum_of_equal_scales_is_exact(unsigned: bool) -> None:
    a, b = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128), indexing="ij")
    operator = Add(1.0, 1.0, 3, -4, 7, -90, 100, unsigned)
    (found,) = operator.evaluate([a.astype(np.int8), b.astype(np.int8)])
    np.testing.assert_array_equal(found, np.clip(a - 3 + b + 4 + 7, -90, 100))


def test_pools_take_windows_without_and_with_padding() -> None:
    x = np.arange(-8, 8).astype(np.int8).reshape(1, 4, 4, 1)
    (maximum,) = MaxPool2d((2, 2), (2, 2), (1, 1, 1, 1)).evaluate([x])
    assert maximum[0, :, :, 0].tolist() == [[-8, -6, -5], [0, 2, 3], [4, 6, 7]]
    (mean,) = AveragePool2d((2, 2), (2, 2), 0, 1, 0.25).evaluate([x])
    assert mean[0, :, :, 0].tolist() == [[-5, -3], [3, 5]]


def test_a_border_is_filled() -> None:
    x = np.ones((1, 1, 1, 2), np.int8)
    (padded,) = Pad((1, 0, 0, 2), -7).evaluate([x])
    assert padded[0, :, :, 0].tolist() == [[-7, -7, -7], [1, -7, -7]]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, r"inputs \[\]; required \['x'\]"),
        ({"y": np.zeros((1, 4), np.int8)}, r"inputs \['y'\]; required \['x'\]"),
        ({"x": np.zeros((1, 5), np.int8)}, r"input 'x' is int8\[1, 5\]; required int8\[1, 4\]"),
        ({"x": np.zeros((1, 4), np.uint8)}, r"input 'x' is uint8\[1, 4\]; required int8\[1, 4\]"),
    ],
)
def test_other_inputs_than_the_graph_has_are_refused(
    inputs: dict[str, np.ndarray], message: str
) -> None:
    builder = image_builder((1, 4))
    graph = builder.build((builder.node(Reshape((4,)), ("x",), "y", "n"),))
    assert set(run(graph, {"x": np.zeros((1, 4), np.int8)})) == {"x", "y"}
    with pytest.raises(GraphError, match=message):
        run(graph, inputs)
