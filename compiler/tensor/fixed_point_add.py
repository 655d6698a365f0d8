"""The residual add in fixed point, checked against the float32 formula on every operand pair.

clip(rint(float32(m0 * a + m1 * b + offset) * 2**-shift) + zero_point, low, high)
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ..graph.interpreter import evaluate
from ..graph.ops import Add

__all__ = ["FixedPointAdd", "find_fixed_point"]

MULTIPLIER_LIMIT = (1 << 23) - 1
ACCUMULATOR_LIMIT = (1 << 31) - 1
TRIES = 4
"""Shifts tried, from the largest."""


@dataclass(frozen=True, slots=True)
class FixedPointAdd:
    """m0, m1: signed 24-bit.  offset: int32.  inexact_pairs: of 65,536, those whose result
    differs.
    """

    m0: int
    m1: int
    offset: int
    shift: int
    inexact_pairs: int


def find_fixed_point(add: Add) -> FixedPointAdd:
    """The form with the fewest differing pairs among those near the exact ratios; none, if
    possible.
    """
    operands = np.arange(-128, 128, dtype=np.int8)
    a, b = np.broadcast_arrays(operands[:, None], operands[None, :])
    wanted = evaluate(add, [a, b])
    best: FixedPointAdd | None = None
    for shift in _shifts(add):
        unit = 1 << shift
        m0, m1 = round(add.a_ratio * unit), round(add.b_ratio * unit)
        center = -round((add.a_ratio * add.a_zero_point + add.b_ratio * add.b_zero_point) * unit)
        steps = sorted(
            product((0, 1, -1, 2, -2), (0, 1, -1, 2, -2)), key=lambda d: abs(d[0]) + abs(d[1])
        )
        for (d0, d1), move in product(steps, (0, 1, -1, 8, -8, 32, -32)):
            drift = -(d0 * add.a_zero_point + d1 * add.b_zero_point)
            form = (m0 + d0, m1 + d1, center + drift + move)
            wrong = int(np.count_nonzero(_evaluate(add, form, shift, a, b) != wanted))
            if best is None or wrong < best.inexact_pairs:
                best = FixedPointAdd(*form, shift, wrong)
            if not wrong:
                return best
    assert best is not None
    return best


def _shifts(add: Add) -> list[int]:
    """The largest shifts for which nothing overflows, largest first."""
    size = abs(add.a_ratio) * 256 + abs(add.b_ratio) * 256 + 1
    largest = max(abs(add.a_ratio), abs(add.b_ratio))
    fitting = [
        shift
        for shift in range(30, 0, -1)
        if largest * (1 << shift) + 2 <= MULTIPLIER_LIMIT
        and size * (1 << shift) + (1 << 16) <= ACCUMULATOR_LIMIT
    ]
    return fitting[:TRIES] or [0]


def _evaluate(
    add: Add,
    form: tuple[int, int, int],
    shift: int,
    a: NDArray[np.int8],
    b: NDArray[np.int8],
) -> NDArray[np.int8]:
    m0, m1, offset = form
    total = m0 * a.astype(np.int64) + m1 * b.astype(np.int64) + offset
    rounded = np.rint(total.astype(np.float32) * np.float32(2.0**-shift)).astype(np.float64)
    return np.clip(rounded + add.zero_point, add.low, add.high).astype(np.int8)
