"""Parameters of fixed-point requantisations, against TensorFlow Lite's formula in whole numbers."""

import numpy as np
import pytest

from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.targets.vta.layers.fixed_sums import parameters_of, sum_limits, sums_problem
from dovetail.isa.requantize import requantize_fixed

LARGEST = (1 << 24) - 1


def multiplied(total: int, multiplier: int, shift: int) -> int:
    """``MultiplyByQuantizedMultiplier``, the form with two roundings."""
    product = (total << max(shift, 0)) * multiplier
    high = product + ((1 << 30) if product >= 0 else 1 - (1 << 30))
    doubled = abs(high) >> 31
    doubled = doubled if high >= 0 else -doubled
    right = max(-shift, 0)
    mask = (1 << right) - 1
    return (doubled >> right) + ((doubled & mask) > (mask >> 1) + (doubled < 0))


@pytest.mark.parametrize("shift", range(-31, 8))
def test_parameters_mean_the_formula_for_every_shift(shift: int) -> None:
    rng = np.random.default_rng(shift + 31)
    multipliers = np.concatenate([[0, 1 << 30, (1 << 31) - 1], rng.integers(1 << 30, 1 << 31, 61)])
    most = LARGEST >> max(shift, 0)
    biases = rng.integers(-(1 << 20), 1 << 20, 64).clip(-most, most)
    sums = rng.integers(-most, most + 1, 64)
    sums[:4] = most, -most, 0, -1
    given = [multipliers.astype(np.int32), np.full(64, shift, np.int32)]
    word, bits = parameters_of(biases.astype(np.int32), given)
    found = requantize_fixed(
        (sums - biases).astype(np.int32), word, bits.view(np.float32), 0, -(1 << 30), 1 << 30
    )
    wanted = [multiplied(int(n), int(m), shift) for n, m in zip(sums, multipliers, strict=True)]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("weight", "bias", "shift", "problem"),
    [
        (127, 0, 0, None),
        (127, 0, 8, "a shift of 8; required at most 7"),
        (1, (1 << 26) - 1, -3, r"sums of channel 1 up to"),
        (1, 1 << 26, 0, "a bias of 67108864; required less than 67108864"),
        (1, LARGEST - 127, 0, None),
        (1, LARGEST - 126, 0, "less than 2^24, or that larger ones are clipped"),
        (1, (LARGEST >> 7) - 127, 7, None),
        (1, (LARGEST >> 7) - 126, 7, "less than 2^24, or that larger ones are clipped"),
    ],
)
def test_what_the_vector_unit_does_not_hold_has_a_reason(
    weight: int, bias: int, shift: int, problem: str | None
) -> None:
    weights = np.full((2, 1, 1, 1), weight, np.int8)
    biases = np.array([0, bias], np.int32)
    # Small enough that no large sum is clipped in any case.
    multiplier = np.full(2, 1 << 4, np.int32)
    conv = Conv2d((1, 1), (0, 0, 0, 0), 1, 0)
    found = sums_problem(conv, weights, biases, multiplier, np.full(2, shift, np.int32))
    assert found is None if problem is None else problem in str(found)


def test_sums_lie_between_those_of_the_least_and_the_largest_bytes() -> None:
    weights = np.array([[2, -3], [-1, -1]], np.int8).reshape(2, 1, 1, 2)
    conv = Conv2d((1, 1), (0, 0, 0, 0), 1, 7)
    low, high = sum_limits(conv, weights, np.array([10, 0], np.int32))
    assert low.tolist() == [10 + 2 * -135 - 3 * 120, -2 * 120]
    assert high.tolist() == [10 + 2 * 120 + 3 * 135, 2 * 135]
