"""A learned model of cost: gradient-boosted trees over features of programs, by XGBoost.

With experience, programs of other kernels that were measured long before, costs are compared within
a kernel only: the trees learn by how much a program is better or worse than others of its kernel.

Source: Chen and Guestrin, XGBoost: A Scalable Tree Boosting System, KDD 2016; the use of it to rank
schedules: Chen et al., Learning to Optimize Tensor Programs, NeurIPS 2018.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .experience import Experience
from .problem import Features

if TYPE_CHECKING:
    import xgboost

__all__ = ["CostModel", "rank_correlation"]

PARAMETERS = {
    "objective": "reg:squarederror",
    "eta": 0.08,
    "max_depth": 7,
    "min_child_weight": 2,
    "subsample": 0.8,
    "colsample_bytree": 0.4,
    "tree_method": "hist",
    "nthread": 1,
    "seed": 0,
    "verbosity": 0,
}
TREES = 200
LEAST = 16
"""Records before the model says anything where there is no experience."""
WORST = 8.0
"""Costs over the default's beyond which candidates are all alike."""
AGAIN, AFTER = 1.1, 6
"""Times as many own records, and further ones at least, before it is trained again."""
DOUBT = 1.0
"""Records of average cost that each kernel is taken to have besides its own."""


@dataclass(slots=True)
class _Kernel:
    """Rows and logarithms of costs; guesses: what the model of experience says of the rows."""

    rows: list[Features] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    guesses: list[float] = field(default_factory=list)

    @property
    def level(self) -> float:
        """Cost of its programs beyond the model of experience, which is relative to a kernel's
        median.  0 without experience.
        """
        if not self.guesses:
            return 0.0
        rest = np.array(self.costs[: len(self.guesses)]) - np.array(self.guesses)
        return float(rest.sum() / (rest.size + DOUBT))


class CostModel:
    """Predicts the logarithm of a candidate's cost over the default's.

    experience: programs of any kernels, measured before.
    XGBoost is imported for the first prediction: with scikit-learn it takes two seconds.
    """

    def __init__(self, experience: Experience | None = None) -> None:
        if find_spec("xgboost") is None:
            raise ModuleNotFoundError("No module named 'xgboost'", name="xgboost")
        self._experience = experience
        self._kernels: dict[str, _Kernel] = defaultdict(_Kernel)
        self._count = self._trained = 0
        self._base: xgboost.Booster | None = None
        self._booster: xgboost.Booster | None = None

    def add(self, key: str, features: Features, ratio: float) -> None:
        """One record of the kernel ``key``."""
        kernel = self._kernels[key]
        kernel.rows.append(features)
        kernel.costs.append(float(np.log2(min(ratio, WORST))))
        self._count += 1

    def predict(self, key: str, features: Sequence[Features]) -> NDArray[np.float32] | None:
        """A score for each candidate, less is better; None while there are too few records."""
        if self._experience is None and self._count < LEAST:
            return None
        if self._booster is None or self._count >= max(
            AGAIN * self._trained, self._trained + AFTER
        ):
            self._train()
        assert self._booster is not None
        level = self._kernels[key].level if key in self._kernels else 0.0
        return level + _predicted(self._booster, features)

    def _train(self) -> None:
        known = self._experience
        if self._base is None and known is not None:
            self._base = _trained(known.rows, known.targets)
        rows = [] if known is None else [known.rows]
        targets = [] if known is None else [known.targets]
        for kernel in self._kernels.values():
            if self._base is not None:
                _complete(kernel, self._base)
            rows.append(np.stack(kernel.rows))
            targets.append(np.array(kernel.costs, np.float32) - kernel.level)
        self._booster = (
            self._base
            if self._base is not None and not self._kernels
            else _trained(np.concatenate(rows), np.concatenate(targets))
        )
        self._trained = self._count


def _complete(kernel: _Kernel, base: "xgboost.Booster") -> None:
    """Guess the costs of new rows."""
    new = kernel.rows[len(kernel.guesses) :]
    if new:
        kernel.guesses += list(map(float, _predicted(base, new)))


def _trained(rows: NDArray[np.float32], targets: NDArray[np.float32]) -> "xgboost.Booster":
    import xgboost

    return xgboost.train(PARAMETERS, xgboost.DMatrix(rows, targets), TREES)


def _predicted(booster: "xgboost.Booster", features: Sequence[Features]) -> NDArray[np.float32]:
    import xgboost

    return np.asarray(booster.predict(xgboost.DMatrix(np.stack(features))), np.float32)


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
