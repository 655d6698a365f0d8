"""The cost model on programs whose cost is known, and the rank correlation."""

import numpy as np
import pytest

from dovetail.compiler.tune.model import LEAST, CostModel, rank_correlation


def test_rank_correlation_of_small_lists() -> None:
    assert rank_correlation([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3], [9, 4, 1]) == pytest.approx(-1)
    assert rank_correlation([1, 2, 2, 3], [1, 2, 2, 3]) == pytest.approx(1)
    assert rank_correlation([1, 1], [1, 2]) == 0


def test_the_model_says_nothing_of_few_records_and_learns_from_many() -> None:
    rng = np.random.default_rng(0)
    model = CostModel()
    rows = rng.uniform(0, 4, (400, 6)).astype(np.float32)
    ratios = 2 ** (rows[:, 0] - rows[:, 1] * (rows[:, 2] > 2))
    for row, ratio in zip(rows[: LEAST - 1], ratios, strict=False):
        model.add(row, float(ratio))
    assert model.predict([rows[-1]]) is None
    for row, ratio in zip(rows[LEAST - 1 : 300], ratios[LEAST - 1 :], strict=False):
        model.add(row, float(ratio))
    predicted = model.predict(list(rows[300:]))
    assert predicted is not None
    assert rank_correlation(list(predicted), list(ratios[300:])) > 0.9
