"""Operators of integers with limits: their real formulas, cut off, and the attributes they take."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.operators.integer.fixed_point import (
    AddFixed,
    AverageFixed,
    MultiplyFixed,
    RequantizeFixed,
    RequantizeReal,
)
from dovetail.compiler.graph.operators.integer.values import Add, Multiply, Requantize, WeightedAdd

Array = NDArray[Any]
RNG = np.random.default_rng(8)
SUMS = RNG.integers(-20_000, 20_000, (5, 7, 3)).astype(np.int32)
A, B = RNG.integers(-128, 128, (2, 1, 6, 6, 5)).astype(np.int8)
LARGEST = (1 << 31) - 1
FACTORS, SHIFTS = np.array([1 << 30, LARGEST, 3 << 29], np.int32), np.array([-6, -8, 0], np.int32)
SCALES = np.array([0.01, 0.5, 1e-3])
BYTE = -128, 127


def of_sum(a: Array, b: Array) -> Array:
    """``0.3 * (a - 4) + 0.7 * (b + 9) - 11``."""
    return 0.3 * (a.astype(float) - 4) + 0.7 * (b.astype(float) + 9) - 11


def of_product(a: Array, b: Array) -> Array:
    """``(a - 4) * (b + 9) / 32 - 11``."""
    return (a.astype(float) - 4) * (b.astype(float) + 9) / 32 - 11


ADD = Add(0.3, 0.7, 4, -9, -11, *BYTE)
MULTIPLY = Multiply(1 / 32, 4, -9, -11, *BYTE)
WEIGHTED = WeightedAdd(3072, 7168, 5120 * 10, 2.0**-10, -11, *BYTE)
LESS, MORE = round(0.3 * LARGEST), round(0.7 * LARGEST)
ADD_FIXED = AddFixed(4, LESS, -1, -9, MORE, -1, 1 << 30, -17, -11, *BYTE)
"""Twice the sum, as it is shifted by 20, 1 and 17, and halved by its multiplier."""
FIXED = RequantizeFixed(-11, *BYTE)
MULTIPLY_FIXED = MultiplyFixed(4, -9, 1 << 30, -4, -11, *BYTE)
AVERAGE = AverageFixed((2, 3), (2, 3), (0, 0, 0, 0), *BYTE)

CASES: list[tuple[Any, Sequence[Array], Callable[..., Array]]] = [
    (Requantize(-11, *BYTE), [SUMS, SCALES.astype(np.float32)], lambda x, s: x * s - 11.0),
    (RequantizeReal(-11, *BYTE), [SUMS, SCALES], lambda x, s: x * s - 11.0),
    (FIXED, [SUMS, FACTORS, SHIFTS], lambda x, m, s: x * (m * 2.0 ** (s - 31)) - 11.0),
    (ADD, [A, B], of_sum),
    (WEIGHTED, [A, B], lambda a, b: 3.0 * a + 7.0 * b + 50 - 11),
    (MULTIPLY, [A, B], of_product),
    (MULTIPLY_FIXED, [A, B], of_product),
    (ADD_FIXED, [A, B], lambda a, b: (of_sum(a, b) + 11) * 2 - 11),
    (AVERAGE, [A], lambda a: a.astype(float).reshape(1, 3, 2, 2, 3, 5).mean(axis=(2, 4))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operator", "inputs", "real"), CASES, ids=[type(each[0]).__name__ for each in CASES]
)
def test_results_are_those_of_the_real_formula_cut_off(
    operator: Any, inputs: Sequence[Array], real: Callable[..., Array]
) -> None:
    (found,) = operator.evaluate(inputs)
    wanted = np.clip(real(*inputs), *BYTE)
    assert np.abs(found - wanted).max() <= 1
    assert found.min() < -20
    assert found.max() > 35
    (narrow,) = replace(operator, low=-20, high=35).evaluate(inputs)
    np.testing.assert_array_equal(narrow, found.clip(-20, 35))


@pytest.mark.parametrize(
    ("operator", "name", "least", "most"),
    [
        *(
            (operator, *limits)
            for operator, *_ in CASES
            for limits in (("low", -128, 127), ("high", -128, 127))
        ),
        *((operator, "zero_point", *BYTE) for operator, *_ in CASES[:-1]),
        *((each, "a_zero_point", *BYTE) for each in (ADD, MULTIPLY, ADD_FIXED, MULTIPLY_FIXED)),
        *((each, "b_zero_point", *BYTE) for each in (ADD, MULTIPLY, ADD_FIXED, MULTIPLY_FIXED)),
        *((ADD_FIXED, name, -LARGEST, LARGEST) for name in ("a_multiplier", "b_multiplier")),
        *((ADD_FIXED, name, -31, 0) for name in ("a_shift", "b_shift", "shift")),
        (ADD_FIXED, "left_shift", 0, 21),
        (MULTIPLY_FIXED, "multiplier", 0, LARGEST),
        (MULTIPLY_FIXED, "shift", -31, 31),
        (WEIGHTED, "a_factor", -(1 << 23) + 1, (1 << 23) - 1),
        (WEIGHTED, "b_factor", -(1 << 23) + 1, (1 << 23) - 1),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_attributes_at_their_limits_are_taken_and_beyond_refused(
    operator: Any, name: str, least: int, most: int
) -> None:
    wide = {"low": {"high": 127}, "high": {"low": -128}}.get(name, {})
    for value in (least, most):
        assert getattr(replace(operator, **wide, **{name: value}), name) == value
    for value in (least - 1, most + 1):
        with pytest.raises(GraphError, match="required"):
            replace(operator, **wide, **{name: value})


@pytest.mark.parametrize(
    "operator", [each[0] for each in CASES], ids=lambda each: type(each).__name__
)
def test_no_limits_without_a_value_between_are_taken(operator: Any) -> None:
    assert replace(operator, low=5, high=5).high == 5
    with pytest.raises(GraphError, match="low <= high"):
        replace(operator, low=6, high=5)
