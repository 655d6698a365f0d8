"""Fitting non-negative sums of features to measured figures."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["fit", "leave_one_out"]

Array = NDArray[np.float64]


def fit(features: Array, figures: Array) -> Array:
    """The weights, none below 0, for which the sum of squared *relative* errors is least.

    features: float64[n, k], none of them negative.  figures: float64[n], all above 0.
    Source: Lawson and Hanson, Solving Least Squares Problems, chapter 23 (algorithm NNLS).
    """
    a, b = features / figures[:, None], np.ones(len(figures))
    scale = np.maximum(np.abs(a).max(axis=0), 1e-30)
    a = a / scale
    weights, free = np.zeros(a.shape[1]), np.zeros(a.shape[1], bool)
    for _ in range(3 * a.shape[1]):
        gradient = a.T @ (b - a @ weights)
        gradient[free] = -np.inf
        if gradient.max() <= 1e-9:
            break
        free[gradient.argmax()] = True
        while True:
            trial = np.zeros_like(weights)
            trial[free] = np.linalg.lstsq(a[:, free], b, rcond=None)[0]
            below = free & (trial <= 0)
            if not below.any():
                break
            step = (weights[below] / (weights[below] - trial[below])).min()
            weights = weights + step * (trial - weights)
            free &= weights > 1e-12
            weights[~free] = 0
        weights = trial
    return np.asarray(weights / scale)


def leave_one_out(features: Array, figures: Array) -> Array:
    """Relative error of each figure, float64[n], when it is predicted from all others."""
    errors = np.zeros(len(figures))
    for row in range(len(figures)):
        rest = np.arange(len(figures)) != row
        weights = fit(features[rest], figures[rest])
        errors[row] = features[row] @ weights / figures[row] - 1
    return errors
