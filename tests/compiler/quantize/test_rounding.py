"""Adaptive rounding against rounding to the nearest, by the error of what a layer computes."""

import itertools

import numpy as np
import pytest

from dovetail.compiler.quantize.rounding import Moments, round_together


def inputs(groups: int, width: int, seed: int = 0) -> np.ndarray:
    """float32[groups, width, positions] that go together, with a mean."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((groups, width, width))
    return (mixing @ rng.standard_normal((groups, width, 400)) + 3).astype(np.float32)


def error(
    weights: np.ndarray,
    integers: np.ndarray,
    scales: np.ndarray,
    x: np.ndarray,
    centred: bool = True,
) -> float:
    """Square; ``centred``: without what a bias takes."""
    lost = (weights - integers * scales[..., None]) @ x
    return float(((lost - centred * lost.mean(axis=2, keepdims=True)) ** 2).sum())


def chosen(
    x: np.ndarray, weights: np.ndarray, scales: np.ndarray, centred: bool = True
) -> np.ndarray:
    moments = Moments(len(x), x.shape[1])
    for part in np.split(x, 4, axis=2):
        moments.see(part)
    return round_together(weights, scales, moments.covariance(centred))


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(("groups", "rows", "width"), [(1, 8, 24), (6, 1, 9)])
def test_it_loses_less_than_the_nearest(groups: int, rows: int, width: int, centred: bool) -> None:
    x = inputs(groups, width)
    weights = np.random.default_rng(1).standard_normal((groups, rows, width))
    scales = np.abs(weights).max(axis=2) / 15
    found = chosen(x, weights, scales, centred)
    assert found.dtype == np.int8
    nearest = np.rint(weights / scales[..., None])
    lost = error(weights, found, scales, x, centred)
    assert lost < 0.6 * error(weights, nearest, scales, x, centred)
    if not centred:
        assert lost < error(weights, chosen(x, weights, scales), scales, x, centred)


def test_it_comes_near_the_best_of_all_roundings() -> None:
    x = inputs(1, 6, 4)
    weights = np.random.default_rng(2).standard_normal((1, 1, 6))
    scales = np.full((1, 1), 0.3)
    below = np.floor(weights / 0.3)
    every = [
        error(weights, below + np.array(up), scales, x)
        for up in itertools.product((-1, 0, 1, 2), repeat=6)
    ]
    assert error(weights, chosen(x, weights, scales), scales, x) < 3 * min(every)


def test_inputs_that_never_change_are_rounded_to_the_nearest() -> None:
    x = inputs(1, 5)
    x[:, 2] = 7
    weights = np.random.default_rng(3).standard_normal((1, 4, 5))
    scales = np.abs(weights).max(axis=2) / 10
    found = chosen(x, weights, scales)
    np.testing.assert_array_equal(found[0, :, 2], np.rint(weights[0, :, 2] / scales[0]))
