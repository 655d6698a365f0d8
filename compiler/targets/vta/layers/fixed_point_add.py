"""The residual add in fixed point, checked against its operator's formula on every operand pair.

clip(rint(float32(m0 * a + m1 * b + offset) * scale) + zero_point, low, high)

The scale is a power of two, unless only another one gives all bytes (``scaled_forms``).  The zero
point is that of the result, or 0 and part of the offset: ONNX Runtime's formula adds it before it
rounds, which matters where sums tie, and where it is odd.  TensorFlow Lite's sums, of more bits
than the vector unit's own fixed point keeps, are found in the same way.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product
from math import floor, log2

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ....errors import UnsupportedOperatorError
from ....graph.operators.integer.fixed_point import AddFixed
from ....graph.operators.integer.values import Add, WeightedAdd
from ..operators import AnyAdd
from .scaled_forms import Form, Ratios, scaled_forms

__all__ = ["FixedPointAdd", "find_fixed_point", "is_exact"]

MULTIPLIER_LIMIT = (1 << 23) - 1
ACCUMULATOR_LIMIT = (1 << 31) - 1
TRIES = 4
"""Shifts tried, from the largest."""
STRETCHES = tuple(part * 2.0**-power for power in range(8, 21) for part in (1, 1.5))
"""Factors that enlarge both ratios, so that sums half way between two integers, which TensorFlow
Lite rounds away from zero, are beyond it.
"""


@frozen
class FixedPointAdd:
    """m0, m1: signed 24-bit.  offset: int32.  scale: of float32.  zero_point: what is added after
    rounding.  inexact_pairs: of 65,536, those whose result differs.
    """

    m0: int
    m1: int
    offset: int
    scale: float
    zero_point: int
    inexact_pairs: int


def _sum_of(add: Add | AddFixed) -> Ratios:
    zero_points = (add.a_zero_point, add.b_zero_point, add.zero_point)
    if isinstance(add, Add):
        return Ratios(add.a_ratio, add.b_ratio, *zero_points, add.low, add.high)
    unit = add.multiplier * 2.0 ** (add.shift - 31 + add.left_shift)
    a_ratio = add.a_multiplier * 2.0 ** (add.a_shift - 31) * unit
    b_ratio = add.b_multiplier * 2.0 ** (add.b_shift - 31) * unit
    return Ratios(a_ratio, b_ratio, *zero_points, add.low, add.high)


@cache
def find_fixed_point(operator: AnyAdd) -> FixedPointAdd:
    """The form with the fewest differing pairs among those near the exact ratios; none, if
    possible.

    A candidate that differs as often on the pairs that the best so far gets wrong is not better.
    Raises UnsupportedOperatorError when a ratio is too large for the vector unit's arithmetic.
    """
    if isinstance(operator, WeightedAdd):
        factors = operator.a_factor, operator.b_factor
        return FixedPointAdd(*factors, operator.offset, operator.scale, operator.zero_point, 0)
    operands = np.arange(-128, 128)
    a, b = operands[:, None], operands[None, :]
    every_a, every_b = np.broadcast_arrays(a, b)
    (wanted,) = operator.evaluate((every_a.astype(np.int8), every_b.astype(np.int8)))
    add = _sum_of(operator)
    best: FixedPointAdd | None = None
    hard = np.ones(wanted.shape, bool)
    for form in _forms(add, a, b, wanted):
        if best is not None:
            few = _evaluate(add, form, every_a[hard], every_b[hard]) != wanted[hard]
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
    """True if a form gives the bytes of all pairs of operands."""
    try:
        return not find_fixed_point(operator).inexact_pairs
    except UnsupportedOperatorError:
        return False


def _forms(
    add: Ratios, a: NDArray[np.int64], b: NDArray[np.int64], wanted: NDArray[np.int8]
) -> Iterator[Form]:
    """Forms whose scale is a power of two, then others."""
    for m0, m1, shift in _multipliers(add):
        unit = 1 << shift
        offset = _best_offset(add, (m0, m1), shift, a, b, wanted)
        yield Form(m0, m1, offset, 2.0**-shift, add.zero_point)
        yield Form(m0, m1, offset + add.zero_point * unit, 2.0**-shift, 0)
    yield from scaled_forms(add, wanted, _largest_unit(add))


def _multipliers(add: Ratios) -> Iterator[tuple[int, int, int]]:
    """Both multipliers and their shift: next to the ratios, then both a little larger or less."""
    steps = sorted(product((0, 1, -1, 2, -2), repeat=2), key=lambda d: abs(d[0]) + abs(d[1]))
    shifts = _shifts(add)
    for shift, (d0, d1) in product(shifts, steps):
        yield round(add.a_ratio * (1 << shift)) + d0, round(add.b_ratio * (1 << shift)) + d1, shift
    for more in STRETCHES:
        unit = (1 << shifts[-1]) * (1 + more)
        yield round(add.a_ratio * unit), round(add.b_ratio * unit), shifts[-1]


def _best_offset(
    add: Ratios,
    multipliers: tuple[int, int],
    shift: int,
    a: NDArray[np.int64],
    b: NDArray[np.int64],
    wanted: NDArray[np.int8],
) -> int:
    """The offset for which most pairs round to ``wanted``.

    A pair is right while its sum stays within half a unit of the wanted value, or beyond it where
    that is clipped; so each allows an interval of offsets, and the best is in most of them.
    """
    m0, m1 = multipliers
    unit = 1 << shift
    center = (wanted.astype(np.int64) - add.zero_point) * unit - (m0 * a + m1 * b)
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


def _shifts(add: Ratios) -> list[int]:
    """The largest shifts for which nothing overflows, largest first."""
    largest = min(floor(log2(_largest_unit(add))), 30)
    return list(range(largest, max(largest - TRIES, -1), -1))


def _largest_unit(add: Ratios) -> float:
    """The largest 1 / scale for which neither a factor nor a sum overflows.

    Raises UnsupportedOperatorError when it is below 1.
    """
    size = abs(add.a_ratio) * 256 + abs(add.b_ratio) * 256 + abs(add.zero_point) + 1
    largest = max(abs(add.a_ratio), abs(add.b_ratio))
    unit = min((MULTIPLIER_LIMIT - 2) / largest, (ACCUMULATOR_LIMIT - (1 << 16)) / size)
    if unit < 1:
        raise UnsupportedOperatorError(
            f"{add}: the ratios of the scales need more than 24-bit multipliers and int32 sums; "
            "quantise the operands and the result with scales nearer to each other"
        )
    return unit


def _evaluate(
    add: Ratios, form: Form, a: NDArray[np.int64], b: NDArray[np.int64]
) -> NDArray[np.int8]:
    total = (form.m0 * a + form.offset) + form.m1 * b
    rounded = np.rint(total.astype(np.float32) * np.float32(form.scale)).astype(np.float64)
    return np.clip(rounded + form.zero_point, add.low, add.high).astype(np.int8)
