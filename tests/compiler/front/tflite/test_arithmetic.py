"""Fixed-point functions on NumPy's integers, against Python's and against floats."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from dovetail.compiler.errors import ModelError
from dovetail.compiler.front.tflite.arithmetic import (
    exponential,
    high_product,
    inverse_root,
    leading_zeros,
    reciprocal,
    rounded_shift,
    scaled_by,
)
from dovetail.compiler.front.tflite.quantized import quantize_multiplier, quantized_value
from dovetail.compiler.front.tflite.schema import Quantization

MOST = (1 << 31) - 1
EDGES = np.unique(
    [each for bit in range(31) for each in ((1 << bit) - 1, 1 << bit, (1 << bit) + 1)]
)[1:]
"""Numbers from 1 on around each power of two."""
SIGNED = np.concatenate([-EDGES, [0], EDGES])
UNIT = 2.0**31


def away(x: Fraction) -> int:
    """The nearest integer, half away from zero."""
    return floor(abs(x) + Fraction(1, 2)) * (1 if x >= 0 else -1)


def test_zeros_are_counted_from_the_highest_bit() -> None:
    found = leading_zeros(EDGES, np.ones_like(EDGES))
    assert list(found) == [32 - int(each).bit_length() for each in EDGES]


@pytest.mark.parametrize("amount", [0, 1, 2, 7, 31])
def test_shifts_round_half_away_from_zero(amount: int) -> None:
    wanted = [away(Fraction(int(each), 1 << amount)) for each in SIGNED]
    assert list(rounded_shift(SIGNED, amount)) == wanted


def test_products_round_half_up() -> None:
    for factor in (1, 3 << 29, MOST, -(1 << 30)):
        half = Fraction(1, 2)
        wanted = [floor(Fraction(int(each) * factor, 1 << 31) + half) for each in SIGNED]
        assert list(high_product(SIGNED, factor)) == wanted


@pytest.mark.parametrize("shift", [-31, -9, -1, 0, 1, 4])
def test_scaled_numbers_are_rounded_twice(shift: int) -> None:
    small, factor = SIGNED[abs(SIGNED) < 1 << 26], 1518500250
    times, by = 1 << max(shift, 0), 1 << max(-shift, 0)
    products = [floor(Fraction(int(x) * times * factor, 1 << 31) + Fraction(1, 2)) for x in small]
    found = scaled_by(small, np.full_like(small, factor), np.full_like(small, shift))
    assert list(found) == [away(Fraction(each, by)) for each in products]


@pytest.mark.parametrize("bits", [0, 2, 5])
def test_exponentials_are_near_those_of_floats(bits: int) -> None:
    x = -np.unique(np.concatenate([EDGES, np.linspace(0, MOST, 400).astype(np.int64)]))
    found = exponential(x, bits) / UNIT
    np.testing.assert_allclose(found, np.exp(x * 2.0 ** (bits - 31)), atol=3e-7)
    assert exponential(np.zeros(1, np.int64), bits) == MOST


def test_reciprocals_are_near_those_of_floats() -> None:
    found = reciprocal(EDGES) / UNIT
    np.testing.assert_allclose(found, 1 / (1 + EDGES / UNIT), atol=4e-9)


def test_inverse_roots_are_near_those_of_floats() -> None:
    factors, shifts = inverse_root(EDGES, np.ones_like(EDGES))
    np.testing.assert_allclose(factors / UNIT * 2.0**shifts, EDGES**-0.5, rtol=1.3e-6)
    first = inverse_root(np.array([0, 1]), np.array([1, 1]))
    assert [list(each) for each in first] == [[MOST, MOST], [0, 0]]


@pytest.mark.parametrize(
    ("real", "multiplier", "shift"),
    [
        (0.5, 1 << 30, 0),
        (1.0, 1 << 30, 1),
        (0.75, 3 << 29, 0),
        (0.0, 0, 0),
        (1 - 2.0**-40, 1 << 30, 1),
        (2.0**-32, 1 << 30, -31),
        (2.0**-33, 0, 0),
        (2.0**30, 1 << 30, 31),
    ],
)
def test_a_scale_is_a_multiplier_of_31_bits_and_a_shift(
    real: float, multiplier: int, shift: int
) -> None:
    assert quantize_multiplier(real) == (multiplier, shift)


def test_scales_that_no_multiplier_has_are_refused() -> None:
    with pytest.raises(ModelError, match=r"a scale of 2.*e\+09 is too large; required less than"):
        quantize_multiplier(2.0**31)
    for real in (-1e-9, float("inf"), float("nan")):
        with pytest.raises(ModelError, match=f"a scale of {real}; required a finite one, 0 or mo"):
            quantize_multiplier(real)


def test_values_are_rounded_half_away_from_zero() -> None:
    halves = Quantization((0.5,), (3,), 0)
    reals = (0.25, -0.25, 0.2, -0.2, 0.0, 1.0, -1.25)
    assert [quantized_value(halves, real) for real in reals] == [4, 2, 3, 3, 3, 5, 0]
