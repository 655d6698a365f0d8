"""Whole steps of sums of few bits: no sum changes its level."""

import numpy as np
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
