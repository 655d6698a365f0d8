"""Scales, zero points, integer weights and biases."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dovetail.compiler.front.onnx.quantize.scales import activation_scale, quantize_weights

REALS = st.floats(-1e4, 1e4, width=32)
WEIGHTS = arrays.arrays(np.float32, (3, 2, 2, 2), elements=st.floats(-8, 8, width=32))
BIASES = arrays.arrays(np.float32, 3, elements=st.floats(-1e5, 1e5, width=32))


@given(REALS, REALS)
def test_the_range_is_covered_and_zero_is_exact(a: float, b: float) -> None:
    low, high = min(a, b, 0.0), max(a, b, 0.0)
    found = activation_scale((low, high))
    assert found.scale > 0
    assert -128 <= found.zero_point <= 127
    lowest, highest = found.limits
    assert lowest <= low + 0.51 * found.scale
    assert highest >= high - 0.51 * found.scale


def test_a_rectified_range_begins_at_the_smallest_integer() -> None:
    assert activation_scale((0.0, 6.0)).zero_point == -128
    assert activation_scale((-6.0, 0.0)).zero_point == 127
    assert activation_scale((0.0, 255 / 256)).scale == np.float32(1 / 256)


@given(WEIGHTS, BIASES, st.booleans())
def test_weights_and_biases_are_within_half_a_step(
    weights: np.ndarray, bias: np.ndarray, per_channel: bool
) -> None:
    x_scale = np.float32(0.02)
    integers, scales, added, _ = quantize_weights(weights, bias, x_scale, 0, per_channel)
    assert integers.dtype == np.int8
    assert integers.min() >= -127
    assert scales.shape == (3,)
    assert per_channel or np.all(scales == scales[0])
    real = integers * scales.reshape(3, 1, 1, 1).astype(np.float64)
    assert np.all(np.abs(real - weights) <= 0.501 * scales.reshape(3, 1, 1, 1))
    assert added is not None
    assert added.dtype == np.int32
    assert np.all(np.abs(added.astype(np.int64)) <= 2**30 + 128)
    steps = scales.astype(np.float64) * float(x_scale)
    assert np.all(np.abs(added * steps - bias) <= 0.501 * steps + 1e-6 * np.abs(bias))


@given(WEIGHTS)
def test_the_largest_weight_of_a_channel_is_127(weights: np.ndarray) -> None:
    largest = np.abs(weights).reshape(3, -1).max(axis=1)
    assume(np.all(largest > 1e-6))
    integers, _, added, _ = quantize_weights(weights, None, np.float32(1), 0, True)
    assert added is None
    assert np.all(np.abs(integers).reshape(3, -1).max(axis=1) == 127)


def test_channels_may_lie_along_another_axis() -> None:
    weights = np.array([[1.0, 50.0], [-2.0, 100.0]], np.float32)
    integers, scales, *_ = quantize_weights(weights, None, np.float32(1), 1, True)
    np.testing.assert_allclose(scales, [2 / 127, 100 / 127])
    np.testing.assert_array_equal(integers, [[64, 64], [-127, 127]])
