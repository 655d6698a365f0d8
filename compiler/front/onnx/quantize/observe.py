"""Observation of a tensor in calibration: a histogram, and the range that follows from it.

Source of the entropy method: S. Migacz, "8-bit Inference with TensorRT", 2017.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ....graph.ir import Array
from .options import Method, QuantizeOptions

__all__ = ["Observer", "Range"]

Range = tuple[float, float]
BINS = 4096
"""Over both signs."""
STEP = 8
"""Bins between the thresholds that the entropy method tries."""


@dataclass(slots=True)
class Observer:
    """Values seen so far: smallest, largest, and counts in ``BINS`` bins over -reach to reach.

    When larger values come, the reach doubles until they fit and neighbouring bins are merged.
    """

    low: float = np.inf
    high: float = -np.inf
    reach: float = 0.0
    zeros: int = 0
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def see(self, values: Array) -> None:
        """Count finite float32 values; those that are exactly 0 apart."""
        flat = values.reshape(-1)
        if not flat.size:
            return
        self.low, self.high = min(self.low, float(flat.min())), max(self.high, float(flat.max()))
        largest = max(-self.low, self.high, 0.0)
        self.reach = self.reach or largest
        while self.reach < largest:
            self._widen()
        flat = flat[flat != 0]
        self.zeros += values.size - flat.size
        if flat.size:
            places = (flat.astype(np.float64) * (BINS / 2 / self.reach) + BINS / 2).astype(np.int64)
            self.counts += np.bincount(np.minimum(places, BINS - 1), minlength=BINS)

    def range(self, options: QuantizeOptions) -> Range:
        """Smallest and largest value to represent; 0 is among them.

        With fewer values than bins, too few to compare distributions, entropy is minmax.
        """
        low, high = min(self.low, 0.0), max(self.high, 0.0)
        if self.reach == 0:
            return 0.0, 0.0
        match options.method:
            case Method.MINMAX:
                return low, high
            case Method.PERCENTILE:
                cut_low, cut_high = self._percentiles(options.percentile)
                return max(low, min(cut_low, 0.0)), min(high, max(cut_high, 0.0))
            case Method.ENTROPY if self.counts.sum() < BINS:
                return low, high
            case Method.ENTROPY:
                threshold = self._threshold()
                return max(low, -threshold), min(high, threshold)
            case Method.MSE:
                return self._least_square(low, high)

    def _widen(self) -> None:
        pairs = self.counts.reshape(-1, 2).sum(axis=1)
        self.counts = np.zeros(BINS, np.int64)
        self.counts[BINS // 4 : 3 * BINS // 4] = pairs
        self.reach *= 2

    def _percentiles(self, inside: float) -> Range:
        counts = self.counts.copy()
        counts[BINS // 2] += self.zeros
        total = counts.sum()
        below = np.concatenate([[0], np.cumsum(counts)])
        edges = np.linspace(-self.reach, self.reach, BINS + 1)
        tail = (100 - inside) / 200 * total
        low = np.interp(tail, below, edges)
        high = np.interp(total - tail, below, edges)
        return float(low), float(high)

    def _least_square(self, low: float, high: float) -> Range:
        """The range of least squared error among those cut at one magnitude.

        A value inside costs a step's square / 12, or its own square where it becomes 0; a value
        outside costs the square of its distance.
        """
        width = 2 * self.reach / BINS
        middles = (np.arange(BINS) - BINS / 2 + 0.5) * width
        ranges, costs = [], []
        for bins in range(STEP, BINS // 2 + STEP, STEP):
            limits = max(low, -bins * width), min(high, bins * width)
            beyond = middles - np.clip(middles, *limits)
            step = (limits[1] - limits[0]) / 255
            ranges.append(limits)
            rounding = np.where(np.abs(middles) < step / 2, middles**2, step**2 / 12)
            costs.append(float(self.counts @ np.where(beyond == 0, rounding, beyond**2)))
        return ranges[int(np.argmin(costs))]

    def _threshold(self) -> float:
        """The magnitude to clip at with the least divergence."""
        positive = self.counts[BINS // 2 :]
        one_sided = self.low >= 0
        histogram = positive if one_sided else positive + self.counts[: BINS // 2][::-1]
        levels = 256 if one_sided else 128
        used = int(np.flatnonzero(histogram)[-1]) + 1
        sizes = [*range(levels, used, STEP), max(used, levels)]
        divergences = [_divergence(histogram.astype(np.float64), n, levels) for n in sizes]
        return sizes[int(np.argmin(divergences))] * self.reach / (BINS // 2)


def _divergence(histogram: NDArray[np.float64], size: int, levels: int) -> float:
    """Kullback-Leibler divergence of the first ``size`` bins, the rest added to the last of them,
    from the same bins spread evenly over the filled ones of each of ``levels`` parts.
    """
    inside = histogram[:size]
    exact = inside.copy()
    exact[-1] += histogram[size:].sum()
    starts = np.arange(levels) * size // levels
    totals = np.add.reduceat(inside, starts)
    filled = np.add.reduceat((inside > 0).astype(np.float64), starts)
    widths = np.diff([*starts, size])
    spread = np.repeat(np.divide(totals, filled, where=filled > 0, out=np.zeros(levels)), widths)
    spread[inside == 0] = 0
    p, q = exact / exact.sum(), spread / max(spread.sum(), 1.0)
    # A bin that holds outliers only has no counterpart: it costs as if there were one value.
    q = np.where((p > 0) & (q == 0), 1 / max(histogram.sum(), 2.0), q)
    present = p > 0
    return float((p[present] * np.log(p[present] / q[present])).sum())
