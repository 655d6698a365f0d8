"""Indices as sums of multiples: their arithmetic, limits and text."""

import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.affine import Linear, linear
from dovetail.compiler.loops.expressions import Constant, Expr, Unary, UnaryFunction, Variable
from dovetail.compiler.loops.text import expr_to_text

X, Y, Z = (Variable(name) for name in "xyz")
THREE, NONE = Constant(3, DType.INT64), Constant(0, DType.INT64)
FLOAT = Variable("f", DType.FLOAT32)


@pytest.mark.parametrize(
    ("expr", "constant", "terms"),
    [
        (THREE, 3, {}),
        (X + 3 + Y, 3, {X: 1, Y: 1}),
        (X - Y - 3, -3, {X: 1, Y: -1}),
        (X - X + 2, 2, {}),
        (X * 4 - X * 3 + X, 0, {X: 2}),
        ((X + 2) * 3, 6, {X: 3}),
        (THREE * (X + 2), 6, {X: 3}),
        (THREE * THREE, 9, {}),
        (X * NONE, 0, {}),
        (NONE * X, 0, {}),
        (Unary(UnaryFunction.NEG, X * 2 - 1), 1, {X: -2}),
        (X * Y, 0, {X * Y: 1}),
        (X // 8 * 2 + X % 8, 0, {X // 8: 2, X % 8: 1}),
        (FLOAT, 0, {FLOAT: 1}),
        (FLOAT + FLOAT, 0, {FLOAT + FLOAT: 1}),
    ],
)
def test_an_index_is_a_constant_and_multiples(
    expr: Expr, constant: int, terms: dict[Expr, int]
) -> None:
    assert linear(expr) == Linear(constant, terms)


def test_forms_are_added_and_multiplied() -> None:
    form = Linear(5, {X: 2, Y: -3})
    assert form + Linear(0, {}) is form
    assert form * 1 is form
    assert form + Linear(2, {}) == form.shifted(2) == Linear(7, {X: 2, Y: -3})
    assert form + Linear(1, {X: -2, Z: 4}) == Linear(6, {Y: -3, Z: 4})
    assert form - form == form * 0 == Linear(0, {})
    assert form * -2 == Linear(-10, {X: -4, Y: 6})
    assert [form.coefficient(name) for name in "xyz"] == [2, -3, 0]


def test_values_and_their_limits() -> None:
    form = Linear(5, {X: 2, Y: -3})
    assert form.at({"x": 4, "y": 1, "z": 9}) == 10
    assert form.at({"y": 2}) == -1
    assert Linear(5, {X % 8: 2}).at({"x": 3}) == 5
    assert form.limits({"x": 4, "y": 3}) == (-1, 11)
    assert form.limits({"x": 1, "y": 1}) == (5, 5)
    assert Linear(7, {}).limits({}) == (7, 7)


def test_a_form_may_be_one_constant_or_one_atom() -> None:
    assert [Linear(7, {}).value, Linear(0, {}).value, Linear(7, {X: 1}).value] == [7, 0, None]
    assert Linear(0, {X: 1}).atom == X
    for other in (Linear(1, {X: 1}), Linear(0, {X: 2}), Linear(0, {X: 1, Y: 1}), Linear(1, {})):
        assert other.atom is None


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (Linear(0, {}), "0"),
        (Linear(-4, {}), "-4"),
        (Linear(0, {X: 1}), "x"),
        (Linear(2, {X: 1}), "x + 2"),
        (Linear(-2, {X: 3}), "x * 3 - 2"),
        (Linear(0, {X: -1}), "0 - x"),
        (Linear(5, {X: -2}), "5 - x * 2"),
        (Linear(0, {X: -1, Y: 1}), "y - x"),
        (Linear(1, {X: 2, Y: 8, Z: -4}), "y * 8 + x * 2 - z * 4 + 1"),
        (Linear(0, {Z: 1, X: 1, Y: 4}), "y * 4 + x + z"),
        (Linear(0, {Z: -1, X: -2}), "0 - x * 2 - z"),
    ],
)
def test_greater_terms_stand_first_and_those_that_are_subtracted_last(
    form: Linear, text: str
) -> None:
    assert expr_to_text(form.to_expr()) == text
    assert linear(form.to_expr()) == form
