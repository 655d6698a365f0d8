"""Functions of single values: integers wrap, floats are those of their dtype."""

import math
from typing import Any

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.arithmetic import binary, constant, integer_limits, unary, wrap
from dovetail.compiler.loops.expressions import BinaryFunction as B
from dovetail.compiler.loops.expressions import UnaryFunction as U

QUOTIENTS = B.DIV, B.FLOORDIV, B.MOD, B.REM
I8, U8, I64, F32, BOOL = DType.INT8, DType.UINT8, DType.INT64, DType.FLOAT32, DType.BOOL


@pytest.mark.parametrize(
    ("function", "dtype", "value", "expected"),
    [
        (U.NEG, I8, 5, -5),
        (U.NEG, I8, -128, -128),
        (U.NEG, U8, 1, 255),
        (U.NEG, F32, 2.5, -2.5),
        (U.ABS, I8, -5, 5),
        (U.ABS, I8, -128, -128),
        (U.ABS, F32, -2.5, 2.5),
        (U.NOT, BOOL, True, False),
        (U.NOT, I8, 5, -6),
        (U.NOT, U8, 5, 250),
        (U.ISNAN, I8, 5, False),
        (U.ISNAN, F32, math.nan, True),
        (U.ISNAN, F32, math.inf, False),
        (U.ISINF, F32, -math.inf, True),
        (U.ISINF, F32, math.nan, False),
        (U.FLOOR, I64, (1 << 62) + 1, (1 << 62) + 1),
        (U.FLOOR, F32, -1.5, -2.0),
        (U.CEIL, F32, -1.5, -1.0),
        (U.SQRT, I64, 10, 3),
        (U.SQRT, F32, 2.0, np.float32(math.sqrt(2))),
    ],
)
def test_a_function_of_one_value(function: U, dtype: DType, value: Any, expected: Any) -> None:
    found = unary(function, dtype)(constant(value, dtype))
    assert found == expected
    assert type(found) is type(constant(value, dtype)) or isinstance(expected, bool)


def test_the_sign_of_0_is_turned() -> None:
    assert np.signbit(unary(U.NEG, F32)(np.float32(0)))
    assert not np.signbit(unary(U.ABS, F32)(np.float32(-0.0)))


@pytest.mark.parametrize(
    ("function", "dtype", "a", "b", "expected"),
    [
        (B.ADD, I8, 100, 100, -56),
        (B.SUB, U8, 3, 5, 254),
        (B.MUL, I8, -128, -1, -128),
        (B.SHL, I8, 1, 7, -128),
        (B.SHR, I8, -9, 1, -5),
        (B.SHR, U8, 200, 7, 1),
        *(
            (function, I8, -7, 2, found)
            for function, found in zip(QUOTIENTS, (-3, -4, 1, -1), strict=True)
        ),
        *(
            (function, I8, 7, -2, found)
            for function, found in zip(QUOTIENTS, (-3, -4, -1, 1), strict=True)
        ),
        *(
            (function, F32, -7.5, 2, found)
            for function, found in zip(QUOTIENTS[1:], (-4, 0.5, -1.5), strict=True)
        ),
        (B.DIV, I8, -7, -2, 3),
        (B.POW, I8, -2, 3, -8),
        (B.POW, I8, 3, -1, 0),
        (B.POW, I8, 1, -5, 1),
        (B.POW, I8, -1, -3, -1),
        (B.POW, I8, -1, -4, 1),
        (B.POW, F32, 2.0, -1.0, 0.5),
        (B.MIN, F32, 1.0, -2.0, -2.0),
        (B.MAX, F32, 1.0, -2.0, 1.0),
        (B.LT, I8, 3, 3, False),
        (B.LE, I8, 3, 3, True),
        (B.ADD, F32, 1.0, 2.0**-24, 1.0),
    ],
)
def test_a_function_of_two_values(function: B, dtype: DType, a: Any, b: Any, expected: Any) -> None:
    assert binary(function, dtype)(constant(a, dtype), constant(b, dtype)) == expected


@pytest.mark.parametrize("function", [B.MIN, B.MAX])
def test_what_is_no_number_stays_so(function: B) -> None:
    one, none = np.float32(1), np.float32(math.nan)
    assert np.isnan(binary(function, F32)(one, none))
    assert np.isnan(binary(function, F32)(none, one))


@pytest.mark.parametrize(("function", "by"), [(B.SHL, 8), (B.SHR, 8), (B.SHL, -1), (B.DIV, 0)])
def test_what_has_no_result_is_an_error(function: B, by: int) -> None:
    with pytest.raises(ArithmeticError):
        binary(function, I8)(3, by)


def test_integers_are_taken_modulo_their_range() -> None:
    assert [integer_limits(dtype) for dtype in (I8, U8, BOOL)] == [(-128, 127), (0, 255), (0, 1)]
    assert [wrap(value, I8) for value in (-129, -128, 127, 128, 384)] == [
        127,
        -128,
        127,
        -128,
        -128,
    ]
    assert [wrap(value, U8) for value in (-1, 0, 255, 256)] == [255, 0, 255, 0]
    assert [constant(300, U8), constant(2, BOOL), constant(1, F32)] == [44, True, np.float32(1)]
