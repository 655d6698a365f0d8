"""The cost model on programs whose cost is known, and the rank correlation."""

import sys

import numpy as np
import pytest

from dovetail.compiler.tune.experience import experience_of
from dovetail.compiler.tune.model import LEAST, CostModel, rank_correlation


def test_rank_correlation_of_small_lists() -> None:
    assert rank_correlation([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3], [9, 4, 1]) == pytest.approx(-1)
    assert rank_correlation([1, 2, 2, 3], [1, 2, 2, 3]) == pytest.approx(1)
    assert rank_correlation([1, 1], [1, 2]) == 0


def test_what_is_missing_is_told_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "xgboost", None)
    with pytest.raises(ModuleNotFoundError) as refused:
        CostModel()
    assert refused.value.name == "xgboost"


def test_the_model_says_nothing_of_few_records_and_learns_from_many() -> None:
    rng = np.random.default_rng(0)
    model = CostModel()
    rows = rng.uniform(0, 4, (400, 6)).astype(np.float32)
    ratios = 2 ** (rows[:, 0] - rows[:, 1] * (rows[:, 2] > 2))
    for row, ratio in zip(rows[: LEAST - 1], ratios, strict=False):
        model.add("kernel", row, float(ratio))
    assert model.predict("kernel", [rows[-1]]) is None
    for row, ratio in zip(rows[LEAST - 1 : 300], ratios[LEAST - 1 :], strict=False):
        model.add("kernel", row, float(ratio))
    predicted = model.predict("kernel", list(rows[300:]))
    assert predicted is not None
    assert rank_correlation(list(predicted), list(ratios[300:])) > 0.9


def test_kernels_of_other_levels_teach_what_is_better_within_one() -> None:
    rng = np.random.default_rng(1)
    before = rng.uniform(0, 1, (200, 4)).astype(np.float32)
    model = CostModel(experience_of({"before": [(row, float(2 ** row[0])) for row in before]}))
    for key, level in (("cheap", 0.3), ("dear", 3.0)):
        for row in rng.uniform(0, 1, (30, 4)).astype(np.float32):
            model.add(key, row, float(level * 2 ** row[0]))
    rows = list(rng.uniform(0, 1, (50, 4)).astype(np.float32))
    cheap, dear = model.predict("cheap", rows), model.predict("dear", rows)
    assert cheap is not None
    assert dear is not None
    assert rank_correlation(list(cheap), [row[0] for row in rows]) > 0.8
    assert np.allclose(dear - cheap, np.log2(3.0 / 0.3), atol=0.3)
