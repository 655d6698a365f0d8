"""Forms of a sum with any scale, for sums that have no exact form with a power of two.

With any float32 scale there are many pairs of factors for the same two ratios.  Each rounds those
sums differently that are almost half way between two results, so often some give all bytes.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Form", "Ratios", "scaled_forms"]

F32, F64 = np.float32, np.float64
ROUNDS, A_ROUND = 120, 500
"""Forms tried: as many in each round."""
NEAR = 2e-3
"""Sums that are as near to half way, in units of the result, decide what a form is worth."""
MOST_PAIRS = 1024
"""Pairs looked at in each round, of perhaps more: ratios such as 1/6 bring 10,000 near half way."""
SMALLEST_PART = 8
"""Factors are at least as large as the largest possible ones over it."""
DEVIATION = 1e-7
"""Standard deviation of scales from the exact one, relative: a unit in the last place of float32.
"""


class Ratios(NamedTuple):
    """``a_ratio * (a - a_zero_point) + b_ratio * (b - b_zero_point) + zero_point``, clipped."""

    a_ratio: float
    b_ratio: float
    a_zero_point: int
    b_zero_point: int
    zero_point: int
    low: int
    high: int

    def exact(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.float64]:
        """The sums, neither rounded nor clipped."""
        total = self.a_ratio * (a - self.a_zero_point) + self.b_ratio * (b - self.b_zero_point)
        return np.asarray(total + self.zero_point)


class Form(NamedTuple):
    """``clip(rint(float32(m0 * a + m1 * b + offset) * scale) + zero_point, low, high)``.

    m0, m1: below 2^23 in magnitude.  offset: int32.  scale: of float32.
    """

    m0: int
    m1: int
    offset: int
    scale: float
    zero_point: int


def scaled_forms(
    sums: Ratios,
    wanted: NDArray[np.int8],
    largest_unit: float,
) -> Iterator[Form]:
    """The best form of each round, as far as sums near half way tell; none for differences.

    Equal sums draw equal numbers.

    wanted: int8[256, 256], the result for each ``a`` and ``b`` from -128.
    largest_unit: 1 / scale for which neither a factor nor a sum overflows.
    """
    operands = np.arange(-128, 128)
    every_a, every_b = np.broadcast_arrays(operands[:, None], operands[None, :])
    exact = sums.exact(every_a, every_b)
    hard = np.abs(exact % 1 - 0.5) < NEAR
    a, b, result = every_a[hard], every_b[hard], wanted[hard].astype(np.int64)
    inside = (exact[hard] > sums.low - 1) & (exact[hard] < sums.high + 1)
    a, b, result = a[inside], b[inside], result[inside]
    if not len(result) or min(sums.a_ratio, sums.b_ratio) <= 0:
        return
    if len(result) > MOST_PAIRS:
        some = np.random.default_rng(1).choice(len(result), MOST_PAIRS, replace=False)
        a, b, result = a[some], b[some], result[some]
    # Factors and sums have fewer than 53 bits: floats have them exactly, and are quicker.
    a, b, wide, narrow = a.astype(F64), b.astype(F64), result.astype(F64), result.astype(F32)
    above, below = result > sums.low, result < sums.high
    rng = np.random.default_rng(0)
    for _ in range(ROUNDS):
        unit = largest_unit * rng.uniform(1 / SMALLEST_PART, 1, A_ROUND)
        m0 = np.rint(sums.a_ratio * unit) + rng.integers(-1, 2, A_ROUND)
        m1 = np.rint(m0 * (sums.b_ratio / sums.a_ratio))
        m0, m1 = np.maximum(m0, 1)[:, None], m1[:, None]
        drawn = 1 + DEVIATION * rng.standard_normal((A_ROUND, 1))
        scale = (sums.a_ratio / m0 * drawn).astype(F32)
        unit = 1 / scale.astype(F64)
        products = m0 * a + m1 * b
        middle = wide * unit - products
        least = middle.max(axis=1, where=above, initial=-np.inf) - unit[:, 0] / 2
        most = middle.min(axis=1, where=below, initial=np.inf) + unit[:, 0] / 2
        both = np.isfinite(least) & np.isfinite(most)
        offset = np.rint(np.where(both, (least + most) / 2, 0))
        products += offset[:, None]
        rounded = products.astype(F32)
        rounded *= scale
        np.clip(np.rint(rounded, out=rounded), sums.low, sums.high, out=rounded)
        wrong = np.count_nonzero(rounded != narrow, axis=1)
        best = int(np.argmin(np.where(both, wrong, len(result) + 1)))
        yield Form(int(m0[best, 0]), int(m1[best, 0]), int(offset[best]), float(scale[best, 0]), 0)
