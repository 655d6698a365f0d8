"""Bounds under a condition, compared with all values that variables can have."""

import itertools

import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.loops.bounds import Bounds
from dovetail.compiler.loops.expressions import (
    Binary,
    BinaryFunction,
    Constant,
    Expr,
    Unary,
    UnaryFunction,
    Variable,
    as_index,
)

RANGES = {"i": (0, 3), "j": (0, 3)}
PLACES = list(itertools.product(range(4), repeat=2))
LEFT, RIGHT = Variable("i") + Variable("j") * 2, as_index(5)
COMPARED = {
    BinaryFunction.LT: lambda i, j: i + 2 * j < 5,
    BinaryFunction.LE: lambda i, j: i + 2 * j <= 5,
    BinaryFunction.EQ: lambda i, j: i + 2 * j == 5,
    BinaryFunction.NE: lambda i, j: i + 2 * j != 5,
}
OTHER, ODD = Variable("j") < 2, Binary(BinaryFunction.NE, Variable("j"), as_index(2))


def allowed(condition: Expr, holds: bool) -> list[bool]:
    """Where no fact of the condition is contradicted."""
    bounds = Bounds(RANGES).where(condition, holds)
    return [not bounds.variable("i", (i, i)).variable("j", (j, j)).empty for i, j in PLACES]


@pytest.mark.parametrize("holds", [True, False])
@pytest.mark.parametrize("function", COMPARED)
def test_a_comparison_is_decided_where_its_facts_say_all_of_it(
    function: BinaryFunction, holds: bool
) -> None:
    condition: Expr = Binary(function, LEFT, RIGHT)
    truth = [COMPARED[function](i, j) for i, j in PLACES]
    for expr, sense in ((condition, holds), (Unary(UnaryFunction.NOT, condition), not holds)):
        found = allowed(expr, sense)
        assert all(a for a, t in zip(found, truth, strict=True) if t is holds)
        assert Bounds.decides(expr, sense) is (found == [each is holds for each in truth])


@pytest.mark.parametrize("second", [OTHER, ODD])
@pytest.mark.parametrize("holds", [True, False])
def test_both_of_two_conditions_must_be_decided(second: Expr, holds: bool) -> None:
    first = LEFT < RIGHT
    means = {OTHER: lambda j: j < 2, ODD: lambda j: j != 2}[second]
    for function, joined in ((BinaryFunction.AND, all), (BinaryFunction.OR, any)):
        condition = Binary(function, first, second)
        truth = [joined((i + 2 * j < 5, means(j))) is holds for i, j in PLACES]
        found = allowed(condition, holds)
        assert all(a for a, t in zip(found, truth, strict=True) if t)
        assert Bounds.decides(condition, holds) is (found == truth)


def test_constants_are_decided_and_comparisons_of_other_types_are_not() -> None:
    assert Bounds.decides(Constant(True, DType.BOOL))
    assert not any(allowed(Constant(False, DType.BOOL), True))
    halves = Binary(BinaryFunction.LT, Constant(0.5, DType.FLOAT32), Constant(0.25, DType.FLOAT32))
    assert not Bounds.decides(halves)
    assert all(allowed(halves, True))
