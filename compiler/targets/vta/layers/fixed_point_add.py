"""The residual add in fixed point, checked against its operator's formula on every operand pair.

clip(rint(float32(m0 * a + m1 * b + offset) * 2**-shift) + zero_point, low, high)

The zero point is that of the result, or 0 and part of the offset: ONNX Runtime's formula adds it
before it rounds, which matters where sums tie, and where it is odd.  TensorFlow Lite's sums, of
more bits than the vector unit's own fixed point keeps, are found in the same way.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ....errors import UnsupportedOperatorError
from ....graph.operators.integer.fixed_point import AddFixed
from ....graph.operators.integer.values import Add, WeightedAdd
from ..operators import AnyAdd

__all__ = ["FixedPointAdd", "find_fixed_point", "is_exact"]

MULTIPLIER_LIMIT = (1 << 23) - 1
ACCUMULATOR_LIMIT = (1 << 31) - 1
TRIES = 4
"""Shifts tried, from the largest."""
STRETCHES = tuple(part * 2.0**-power for power in range(8, 21) for part in (1, 1.5))
"""What both ratios are enlarged by, so that sums half way between two integers, which TensorFlow
Lite rounds away from zero, lie beyond it.
"""


@dataclass(frozen=True, slots=True)
class FixedPointAdd:
    """m0, m1: signed 24-bit.  offset: int32.  zero_point: what is added after rounding.
    inexact_pairs: of 65,536, those whose result differs.
    """

    m0: int
    m1: int
    offset: int
    shift: int
    zero_point: int
    inexact_pairs: int


@dataclass(frozen=True, slots=True)
class _Sum:
    """``a_ratio * (a - a_zero_point) + b_ratio * (b - b_zero_point) + zero_point``, clipped."""

    a_ratio: float
    b_ratio: float
    a_zero_point: int
    b_zero_point: int
    zero_point: int
    low: int
    high: int


def _sum_of(add: Add | AddFixed) -> _Sum:
    zero_points = (add.a_zero_point, add.b_zero_point, add.zero_point)
    if isinstance(add, Add):
        return _Sum(add.a_ratio, add.b_ratio, *zero_points, add.low, add.high)
    unit = add.multiplier * 2.0 ** (add.shift - 31 + add.left_shift)
    a_ratio = add.a_multiplier * 2.0 ** (add.a_shift - 31) * unit
    b_ratio = add.b_multiplier * 2.0 ** (add.b_shift - 31) * unit
    return _Sum(a_ratio, b_ratio, *zero_points, add.low, add.high)


@cache
def find_fixed_point(operator: AnyAdd) -> FixedPointAdd:
    """The form with the fewest differing pairs among those near the exact ratios; none, if
    possible.

    A candidate that differs as often on the pairs that the best so far gets wrong is not better.
    Raises UnsupportedOperatorError when a ratio is too large for the vector unit's arithmetic.
    """
    if isinstance(operator, WeightedAdd):
        factors = operator.a_factor, operator.b_factor
        return FixedPointAdd(*factors, operator.offset, operator.shift, operator.zero_point, 0)
    operands = np.arange(-128, 128, dtype=np.int8)
    a, b = np.broadcast_arrays(operands[:, None], operands[None, :])
    (wanted,) = operator.evaluate((a, b))
    add = _sum_of(operator)
    best: FixedPointAdd | None = None
    hard = np.ones(wanted.shape, bool)
    for m0, m1, shift in _multipliers(add):
        unit = 1 << shift
        offset = _best_offset(add, (m0, m1), shift, a, b, wanted)
        whole = (m0, m1, offset + add.zero_point * unit, shift, 0)
        for form in ((m0, m1, offset, shift, add.zero_point), whole):
            if best is not None:
                few = _evaluate(add, form, a[hard], b[hard]) != wanted[hard]
                if np.count_nonzero(few) >= best.inexact_pairs:
                    continue
            differs = _evaluate(add, form, a, b) != wanted
            wrong = int(np.count_nonzero(differs))
            if best is None or wrong < best.inexact_pairs:
                best, hard = FixedPointAdd(*form, wrong), differs
            if not wrong:
                return best
    assert best is not None
    return best


def is_exact(operator: AnyAdd) -> bool:
    """Whether a form gives the bytes of all pairs of operands."""
    try:
        return not find_fixed_point(operator).inexact_pairs
    except UnsupportedOperatorError:
        return False


def _multipliers(add: _Sum) -> Iterator[tuple[int, int, int]]:
    """Both multipliers and their shift: next to the ratios, then both a little larger or less."""
    steps = sorted(product((0, 1, -1, 2, -2), repeat=2), key=lambda d: abs(d[0]) + abs(d[1]))
    shifts = _shifts(add)
    for shift, (d0, d1) in product(shifts, steps):
        yield round(add.a_ratio * (1 << shift)) + d0, round(add.b_ratio * (1 << shift)) + d1, shift
    for more in STRETCHES:
        unit = (1 << shifts[-1]) * (1 + more)
        yield round(add.a_ratio * unit), round(add.b_ratio * unit), shifts[-1]


def _best_offset(
    add: _Sum,
    multipliers: tuple[int, int],
    shift: int,
    a: NDArray[np.int8],
    b: NDArray[np.int8],
    wanted: NDArray[np.int8],
) -> int:
    """The offset for which most pairs round to ``wanted``.

    A pair is right while its sum stays within half a unit of the wanted value, or beyond it where
    that is clipped; so each allows an interval of offsets, and the best lies in most of them.
    """
    m0, m1 = multipliers
    unit = 1 << shift
    products = m0 * a.astype(np.int64) + m1 * b.astype(np.int64)
    center = (wanted.astype(np.int64) - add.zero_point) * unit - products
    lows = (center - unit // 2)[wanted > add.low]
    highs = (center + unit // 2)[wanted < add.high]
    if not len(lows) or not len(highs):
        return -round((add.a_ratio * add.a_zero_point + add.b_ratio * add.b_zero_point) * unit)
    first, last = int(highs.min()), int(lows.max())
    if last < first:
        return (last + first) // 2
    lows, highs = np.sort(lows[lows >= first]), np.sort(highs[highs <= last])
    offsets = np.unique(np.concatenate([lows, lows + 1, highs, highs - 1]))
    inside = np.searchsorted(lows, offsets, "right") - np.searchsorted(highs, offsets, "left")
    return int(offsets[np.argmax(inside)])


def _shifts(add: _Sum) -> list[int]:
    """The largest shifts for which nothing overflows, largest first."""
    size = abs(add.a_ratio) * 256 + abs(add.b_ratio) * 256 + abs(add.zero_point) + 1
    largest = max(abs(add.a_ratio), abs(add.b_ratio))
    fitting = [
        shift
        for shift in range(30, -1, -1)
        if largest * (1 << shift) + 2 <= MULTIPLIER_LIMIT
        and size * (1 << shift) + (1 << 16) <= ACCUMULATOR_LIMIT
    ]
    if not fitting:
        raise UnsupportedOperatorError(
            f"{add}: the ratios of the scales need more than 24-bit multipliers and int32 sums; "
            "quantise the operands and the result with scales nearer to each other"
        )
    return fitting[:TRIES]


def _evaluate(
    add: _Sum,
    form: tuple[int, int, int, int, int],
    a: NDArray[np.int8],
    b: NDArray[np.int8],
) -> NDArray[np.int8]:
    m0, m1, offset, shift, zero_point = form
    total = m0 * a.astype(np.int64) + m1 * b.astype(np.int64) + offset
    rounded = np.rint(total.astype(np.float32) * np.float32(2.0**-shift)).astype(np.float64)
    return np.clip(rounded + zero_point, add.low, add.high).astype(np.int8)
