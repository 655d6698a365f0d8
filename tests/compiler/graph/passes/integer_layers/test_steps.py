"""Whole steps of sums of few bits: no sum changes its level."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.graph.passes.integer_layers.steps import levels_kept


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([16, 18, 48, 112]),
    st.sampled_from([(-2, 1), (0, 3), (-8, 7), (0, 15)]),
)
def test_each_sum_stays_on_its_level(seed: int, factor: int, levels: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    ratio, bias = 10 ** rng.uniform(-3, 1, 32), rng.normal(0, 30, 32)
    bias[:8] = np.rint(bias[:8]) + rng.choice([0.5, 0.499999, 0.001, 0], 8)
    reach = rng.integers(1, 2000, 32).astype(float)
    factors = np.full(32, factor)
    whole, ratios = levels_kept(ratio, bias, factors, levels, reach)
    assert np.array_equal(whole, np.rint(whole))
    sums = np.arange(-2000, 2001)[:, None]
    expected = np.clip(np.rint((sums + bias) * ratio), *levels)
    products = (sums * factor + whole).astype(np.float32) * ratios.astype(np.float32)
    wrong = (np.clip(np.rint(products), *levels) != expected) & (np.abs(sums) <= reach)
    assert not wrong.any(), ratio[wrong.any(0)]


@pytest.mark.parametrize(
    ("ratio", "bias", "factor", "levels", "reach", "expected"),
    [
        (1.0, 0.25, 4, (-2, 1), 9, (1, 0.25)),  # exact
        # rint((n + 0.5) * 0.4) is above 1/2 from 1 on, and above 3/2 from 4 on.  Without a bias,
        # 1 and 4 would need more than 0.5 and 0.375, and 3 at most 0.5.  With 1 it is 0.3 to 0.375.
        (0.4, 0.5, 1, (0, 2), 3, (1, 0.3375)),
        (0.4, 0.5, 1, (0, 2), 2, (0, 0.500005)),  # 4 is out of reach
    ],
)
def test_biases_and_ratios_are_those_of_the_nearest_levels(
    ratio: float,
    bias: float,
    factor: int,
    levels: tuple[int, int],
    reach: int,
    expected: tuple[int, float],
) -> None:
    columns = (np.array([each, each]) for each in (ratio, bias, factor))
    whole, ratios = levels_kept(*columns, levels, np.array([reach, reach], float))
    np.testing.assert_allclose(np.stack([whole, ratios], 1), [expected] * 2, rtol=1e-9)
