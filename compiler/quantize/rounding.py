"""Adaptive rounding of a layer's weights: what rounding one weight changes, later ones make up for.

Source: E. Frantar et al., "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
Transformers", 2022, which follows B. Hassibi, D. Stork, "Optimal Brain Surgeon", 1992.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["Moments", "round_together"]

Real = NDArray[np.float64]
DAMPING = 0.01
"""Added to each variance, as a share of it; and width / positions, for few positions say little
of how inputs go together.
"""
LARGEST = 127
STEADY = 1e-12
"""A variance, as a share of the square mean, that float64 cannot tell from none."""


class Moments:
    """Products of a layer's inputs over all positions seen.

    groups: of channels that share no inputs.  width: inputs of each output.
    """

    def __init__(self, groups: int, width: int) -> None:
        self._products = np.zeros((groups, width, width))
        self._sums = np.zeros((groups, width))
        self._count = 0

    def see(self, inputs: NDArray[np.float32]) -> None:
        """Count float32[groups, width, positions]."""
        exact = inputs.astype(np.float64)
        self._products += exact @ exact.transpose(0, 2, 1)
        self._sums += exact.sum(axis=2)
        self._count += exact.shape[2]

    def covariance(self, centred: bool) -> Real:
        """float64[groups, width, width], damped; ``centred``: the means are left to a bias."""
        count, width = max(self._count, 1), self._sums.shape[1]
        means = self._sums / count if centred else np.zeros_like(self._sums)
        found = self._products / count - means[:, :, None] * means[:, None]
        changes = _variances(found) > STEADY * means**2
        found *= changes[:, :, None] & changes[:, None]
        added = (DAMPING + width / count) * _variances(found)
        return found + added[:, :, None] * np.eye(width)


def round_together(
    weights: Real,
    scales: Real,
    covariance: Real,
    factors: NDArray[np.int8] | None = None,
    limits: tuple[int, int] = (-LARGEST, LARGEST),
) -> NDArray[np.int8]:
    """int8 with the least ``|(W - scale q) x|`` that a greedy order finds.

    weights: [groups, rows, width].  scales: [groups, rows].  covariance: of the inputs,
    [groups, width, width].  Inputs are taken from the largest variance to the smallest.
    factors: int8[groups, rows, width]; each q is a whole number within ``limits`` times its own.
    """
    order = np.argsort(-_variances(covariance), axis=1)
    turned = np.take_along_axis(covariance, order[:, :, None], axis=1)
    factor = _inverse_factor(np.take_along_axis(turned, order[:, None, :], axis=2))
    rest = np.take_along_axis(weights / scales[:, :, None], order[:, None, :], axis=2)
    chosen = np.empty(rest.shape)
    steps = np.ones(rest.shape)
    if factors is not None:
        steps = np.take_along_axis(factors.astype(np.float64), order[:, None, :], axis=2)
    for place in range(rest.shape[2]):
        step = steps[:, :, place]
        chosen[:, :, place] = step * np.clip(np.rint(rest[:, :, place] / step), *limits)
        error = (rest[:, :, place] - chosen[:, :, place]) / factor[:, None, place, place]
        rest[:, :, place + 1 :] -= error[:, :, None] * factor[:, None, place + 1 :, place]
    back = np.argsort(order, axis=1)
    return np.take_along_axis(chosen, back[:, None, :], axis=2).astype(np.int8)


def _inverse_factor(covariance: Real) -> Real:
    """L with L L' the inverse of the covariance, lower triangular; inputs that never change go with
    no other.
    """
    variances = _variances(covariance)
    changes = variances > 0
    deviations = np.sqrt(np.where(changes, variances, 1.0))
    normal = covariance / deviations[:, :, None] / deviations[:, None, :]
    normal += np.where(changes, 0.0, 1.0)[:, :, None] * np.eye(covariance.shape[1])
    return np.linalg.cholesky(np.linalg.inv(normal)) / deviations[:, :, None]


def _variances(covariance: Real) -> Real:
    return np.einsum("gkk->gk", covariance)
