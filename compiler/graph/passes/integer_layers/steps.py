"""Whole steps for sums of few bits, so that each sum falls on the side of a level that it should.

A layer of few bits has sums ``n`` of few values, and its result ``rint(n * ratio + bias)`` changes
at certain ones.  Hardware adds a whole number to ``factor * n`` and multiplies once.  Any ``bias``
can be rounded so; what is asked for is the rounding that keeps all the sums where the result
changes.
"""

import numpy as np
from numpy.typing import NDArray

from .values import Array

__all__ = ["NEAR", "levels_kept"]

NEAR = 3
"""Whole biases that are tried on each side of the exact one."""

Floats = NDArray[np.float64]


def levels_kept(
    ratio: Floats, bias: Floats, factor: Array, levels: tuple[int, int], reach: Floats
) -> tuple[Array, Floats]:
    """Whole biases, float64[O], and ratios, float64[O], for sums ``factor * n``.

    ratio: of a step of ``n`` to one of the result, float64[O].  bias: in steps of ``n``,
    float64[O].  factor: int64[O].  levels: least and greatest result, about its zero point.
    reach: largest ``n``, either sign, float64[O].
    Results between the levels nearest to 0 are kept first, where not all can be.
    """
    halves: Floats = np.arange(*levels, dtype=np.float64) + 0.5
    halves = halves[np.argsort(np.abs(halves), kind="stable")][:, None]
    first = _first_above(halves, ratio, bias)
    free = np.abs(first) > reach + 1
    best = np.full(ratio.shape, -1)
    chosen, ratios = np.rint(bias * factor), ratio / factor
    for away in sorted(range(-NEAR, NEAR + 1), key=abs):
        whole = np.rint(bias * factor) + away
        low, high = _bounds(halves, factor * first + whole, factor * (first - 1) + whole)
        low = np.maximum.accumulate(np.where(free, 0, low))
        high = np.minimum.accumulate(np.where(free, np.inf, high))
        kept = (low * (1 + 1e-6) < high).sum(axis=0)
        better = kept > best
        last = np.maximum(kept - 1, 0)[None]
        low, high = (np.take_along_axis(each, last, 0)[0] for each in (low, high))
        middle = np.where(np.isfinite(high), (low + high) / 2, low * (1 + 1e-5))
        inside = (low * (1 + 3e-7) < ratio / factor) & (ratio / factor < high * (1 - 3e-7))
        found = np.where(inside | (kept == 0), ratio / factor, middle)
        best = np.where(better, kept, best)
        chosen, ratios = np.where(better, whole, chosen), np.where(better, found, ratios)
    return chosen, ratios


def _first_above(halves: Floats, ratio: Floats, bias: Floats) -> Floats:
    """The least whole sum whose result is above each half."""
    start = np.ceil(halves / ratio - bias) - 1
    below = sum(np.rint((start + more + bias) * ratio) < halves for more in range(3))
    return np.asarray(start + below)


def _bounds(halves: Floats, above: Floats, below: Floats) -> tuple[Floats, Floats]:
    """Ratios between which ``above`` is above the half and ``below`` is not."""
    with np.errstate(divide="ignore", invalid="ignore"):
        to_above, to_below = halves / above, halves / below
    positive = halves > 0
    low = np.where(
        positive,
        np.where(above > 0, to_above, np.inf),
        np.where(below < 0, to_below, np.inf),
    )
    high = np.where(
        positive,
        np.where(below > 0, to_below, np.inf),
        np.where(above < 0, to_above, np.inf),
    )
    return low, high
