"""Elements of element-wise operators against their NumPy meaning."""

import math
from typing import Any

import numpy as np
import pytest

from dovetail.compiler.graph.operators.elementwise import Binary, BinaryFunction
from dovetail.compiler.graph.operators.functions import BITWISE, SHIFTS

from ..schedule.rules.cpu.single import interpreted

WHOLE = (-128, -7, -3, -1, 0, 1, 2, 7, 8, 127)


def pairs(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of some numbers, 0 and the limits of int8 among them."""
    values = np.array(WHOLE).astype(dtype)
    return np.repeat(values, len(values)), np.tile(values, len(values))


CASES = [
    (function, dtype)
    for function in BinaryFunction
    for dtype in (np.int8, np.uint8, np.int32, np.float32)
    if dtype is not np.float32 or function not in BITWISE | SHIFTS
]


@pytest.mark.parametrize(("function", "dtype"), CASES)
def test_a_function_of_pairs(function: BinaryFunction, dtype: Any) -> None:
    a, b = pairs(dtype)
    if function is BinaryFunction.POW:
        a, b = a[b >= 0], b[b >= 0]
    operator = Binary(function)
    with np.errstate(all="ignore"):
        (expected,) = operator.evaluate([a, b])
        (found,) = interpreted(operator, a, b)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("function", "quotient"),
    [
        (BinaryFunction.DIV, lambda a, b: math.trunc(a / b)),
        (BinaryFunction.FLOORDIV, lambda a, b: a // b),
        (BinaryFunction.MOD, lambda a, b: a % b),
        (BinaryFunction.REM, lambda a, b: int(math.fmod(a, b))),
    ],
)
def test_divisions_of_integers_are_pythons_and_0_by_0(
    function: BinaryFunction, quotient: Any
) -> None:
    a, b = pairs(np.int32)
    with np.errstate(all="ignore"):
        (found,) = Binary(function).evaluate([a, b])
    expected = [quotient(x, y) if y else 0 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert found.tolist() == expected


def test_floats_are_divided_and_rounded_down() -> None:
    a, b = np.array([7, -7, 1, 0], np.float32), np.array([2, 2, 0, 0], np.float32)
    (found,) = Binary(BinaryFunction.FLOORDIV).evaluate([a, b])
    np.testing.assert_array_equal(found, np.array([3, -4, np.inf, np.nan], np.float32))
