"""TensorFlow Lite's integer layers: rounding against exact fractions, and refusals."""

from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.operators.integer.fixed_point import (
    AverageFixed,
    RequantizeFixed,
    scaled,
)
from dovetail.compiler.graph.types import TensorType

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)


def half_up(value: Fraction) -> int:
    return floor(value + Fraction(1, 2))


def half_away(value: Fraction) -> int:
    return floor(value + Fraction(1, 2)) if value > 0 else ceil(value - Fraction(1, 2))


@given(INT32, st.integers(0, (1 << 31) - 1), st.integers(-31, 0))
def test_both_roundings_are_of_exact_fractions(x: int, multiplier: int, shift: int) -> None:
    high = half_up(Fraction(x * multiplier, 1 << 31))
    found = scaled(np.asarray([x]), multiplier, shift)
    assert found.tolist() == [half_away(Fraction(high, 1 << -shift))]


@pytest.mark.parametrize(
    ("x", "multiplier", "shift", "wanted"),
    [
        (3, 1 << 30, 0, 2),
        (-3, 1 << 30, 0, -1),
        (1, 1 << 30, 1, 1),
        (3, (1 << 31) - 1, -1, 2),
        (-3, (1 << 31) - 1, -1, -2),
        (1 << 30, 1 << 30, 1, -(1 << 30)),
    ],
)
def test_halves_of_each_rounding(x: int, multiplier: int, shift: int, wanted: int) -> None:
    assert scaled(np.asarray([x]), multiplier, shift).tolist() == [wanted]


@given(st.lists(st.integers(-128, 127), min_size=4, max_size=4), st.booleans())
def test_averages_round_halves_away_from_zero(values: list[int], unsigned: bool) -> None:
    shift = 128 if unsigned else 0
    x = np.asarray(values, np.int8).reshape(1, 2, 2, 1)
    (found,) = AverageFixed((2, 2), (2, 2), (1, 0, 0, 0), -128, 127, unsigned).evaluate([x])
    top = half_away(Fraction(sum(values[:2]), 2) + shift) - shift
    assert found.reshape(-1).tolist() == [top]


def test_a_multiplier_belongs_to_each_channel() -> None:
    sums, three, two = (TensorType(s, "int32") for s in ((1, 3), (3,), (2,)))
    operator = RequantizeFixed(0, -128, 127)
    assert operator.result((sums, three, three)) == (TensorType((1, 3), "int8"),)
    with pytest.raises(GraphError, match=r"found int32\[2\], required int32\[3\]"):
        operator.result((sums, three, two))
