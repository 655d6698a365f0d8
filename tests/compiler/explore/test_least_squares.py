"""Weights from 0 on for which squared relative errors are least."""

from itertools import combinations

import numpy as np
import pytest

from dovetail.compiler.explore.least_squares import Array, fit, leave_one_out


def best(features: Array, figures: Array) -> Array:
    """By all choices of features: the plain least squares of one of them is the answer."""
    a, count = features / figures[:, None], features.shape[1]
    least, found = float(len(figures)), np.zeros(count)
    for size in range(1, count + 1):
        for chosen in combinations(range(count), size):
            weights = np.zeros(count)
            weights[list(chosen)] = np.linalg.lstsq(a[:, chosen], np.ones(len(figures)))[0]
            error = float(((a @ weights - 1) ** 2).sum())
            if weights.min() >= 0 and error < least:
                least, found = error, weights
    return found


@pytest.mark.parametrize("seed", range(12))
def test_weights_are_the_best_of_all_choices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.uniform(0, 1, (7, 4)) ** 3 * [1, 10, 1e4, 1e-3]
    figures = rng.uniform(1, 100, 7)
    np.testing.assert_allclose(fit(features, figures), best(features, figures), rtol=1e-6)


def test_each_figure_is_predicted_from_the_others() -> None:
    features, figures = np.array([[1.0], [2.0], [4.0]]), np.array([10.0, 20.0, 20.0])
    # 10 a unit of the first two; of the second and third, 1/10 w and 1/5 w: w = 6; then 1/10, 1/5.
    np.testing.assert_allclose(leave_one_out(features, figures), [-0.4, -0.4, 1.0])
    np.testing.assert_allclose(fit(np.zeros((2, 1)), np.ones(2)), [0])
