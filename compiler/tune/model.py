"""A learned model of cost: gradient-boosted trees over features of programs, by XGBoost.

Source: Chen and Guestrin, XGBoost: A Scalable Tree Boosting System, KDD 2016; the use of it to rank
schedules: Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018.
"""

from collections.abc import Sequence

import numpy as np
import xgboost
from numpy.typing import NDArray

from .problem import Features

__all__ = ["CostModel", "rank_correlation"]

PARAMETERS = {
    "objective": "reg:squarederror",
    "eta": 0.15,
    "max_depth": 7,
    "min_child_weight": 2,
    "subsample": 0.9,
    "colsample_bytree": 0.8,
    "tree_method": "hist",
    "nthread": 1,
    "seed": 0,
    "verbosity": 0,
}
TREES = 160
LEAST = 16
"""Records before the model says anything."""
WORST = 8.0
"""Costs over the default's beyond which candidates are all alike."""
AGAIN = 1.08
"""Times as many records before it is trained again."""


class CostModel:
    """Predicts the logarithm of a candidate's cost over the default's."""

    def __init__(self) -> None:
        self._features: list[Features] = []
        self._targets: list[float] = []
        self._booster: xgboost.Booster | None = None
        self._trained = 0

    def add(self, features: Features, ratio: float) -> None:
        """One record."""
        self._features.append(features)
        self._targets.append(float(np.log2(min(ratio, WORST))))

    def predict(self, features: Sequence[Features]) -> NDArray[np.float32] | None:
        """Of each, less is better; None as long as there are too few records."""
        if len(self._targets) < LEAST:
            return None
        if self._booster is None or len(self._targets) >= AGAIN * self._trained:
            data = xgboost.DMatrix(np.stack(self._features), np.array(self._targets))
            self._booster = xgboost.train(PARAMETERS, data, TREES)
            self._trained = len(self._targets)
        return np.asarray(self._booster.predict(xgboost.DMatrix(np.stack(features))))


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's: 1 for the same order, 0 for none; equal values share their ranks."""
    x, y = _ranks(np.asarray(a, np.float64)), _ranks(np.asarray(b, np.float64))
    x, y = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((x * x).sum() * (y * y).sum()))
    return float((x * y).sum() / scale) if scale else 0.0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    found = np.empty(values.size)
    for value in np.unique(values):
        same = values == value
        found[same] = (values < value).sum() + (same.sum() - 1) / 2
    return found
