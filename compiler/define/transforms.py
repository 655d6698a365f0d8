"""Sums of values times the constants of a small matrix, few operations each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..dtypes import DType
from ..graph.operators.winograd import Matrix
from ..loops.expressions import Constant, Expr, Variable
from ..loops.ir import Let, Stmt
from .operand import Scope

__all__ = ["Grid", "Names", "transformed"]

Grid = list[list[Expr]]


@dataclass(slots=True)
class Names:
    """Values that are used again, by name."""

    scope: Scope
    bound: list[tuple[Variable, Expr]]

    def __init__(self, scope: Scope) -> None:
        self.scope, self.bound = scope, []

    def bind(self, value: Expr) -> Expr:
        """A variable of this value."""
        variable = Variable(self.scope.fresh("w"), value.dtype)
        self.bound.append((variable, value))
        return variable

    def around(self, body: Stmt) -> Stmt:
        """``body``, which may use all of them."""
        for variable, value in reversed(self.bound):
            body = Let(variable, value, body)
        return body


def transformed(matrix: Matrix, values: Grid, names: Names) -> Grid:
    """``matrix values matrix^T``."""
    columns = [_combined(matrix, list(column), names) for column in zip(*values, strict=True)]
    return [_combined(matrix, list(row), names) for row in zip(*columns, strict=True)]


def _combined(matrix: Matrix, values: list[Expr], names: Names) -> list[Expr]:
    """``matrix values``; what two columns, or two rows, have in common is computed once."""
    terms, rows = _paired_columns(matrix, values, names)
    found: dict[int, Expr] = {}
    for first, row in enumerate(rows):
        other = _opposite(rows, first, found)
        if first in found:
            continue
        if other is None:
            found[first] = names.bind(_sum(row, terms))
            continue
        same = [a if a == b else Fraction(0) for a, b in zip(row, rows[other], strict=True)]
        rest = [Fraction(0) if a == b else a for a, b in zip(row, rows[other], strict=True)]
        even, odd = names.bind(_sum(same, terms)), names.bind(_sum(rest, terms))
        found[first], found[other] = names.bind(even + odd), names.bind(even - odd)
    return [found[number] for number in range(len(rows))]


def _paired_columns(
    matrix: Matrix, values: list[Expr], names: Names
) -> tuple[list[Expr], list[list[Fraction]]]:
    """Sum and difference in place of two values whose coefficients are equal or opposite."""
    terms, columns = list(values), [list(column) for column in zip(*matrix, strict=True)]
    for first in range(len(columns)):
        for other in range(first + 1, len(columns)):
            a, b = columns[first], columns[other]
            if a == b or not all(abs(x) == abs(y) for x, y in zip(a, b, strict=True)):
                continue
            total = names.bind(terms[first] + terms[other])
            difference = names.bind(terms[first] - terms[other])
            terms[first], terms[other] = total, difference
            columns[first] = [x if x == y else Fraction(0) for x, y in zip(a, b, strict=True)]
            columns[other] = [Fraction(0) if x == y else x for x, y in zip(a, b, strict=True)]
    return terms, [list(row) for row in zip(*columns, strict=True)]


def _opposite(
    rows: Sequence[Sequence[Fraction]], first: int, found: Mapping[int, Expr]
) -> int | None:
    """A later row with equal and opposite coefficients, some of each."""
    for other in range(first + 1, len(rows)):
        pairs = [(a, b) for a, b in zip(rows[first], rows[other], strict=True) if a or b]
        equal = sum(a == b for a, b in pairs)
        paired = 0 < equal < len(pairs) and all(abs(a) == abs(b) for a, b in pairs)
        if paired and other not in found:
            return other
    return None


def _sum(row: Sequence[Fraction], terms: Sequence[Expr]) -> Expr:
    """The terms times their coefficients, those of 1 first."""
    total: Expr | None = None
    parts = sorted(
        ((factor, term) for factor, term in zip(row, terms, strict=True) if factor),
        key=lambda part: (part[0] != 1, part[0] != -1),
    )
    for factor, term in parts:
        if total is None:
            total = term if factor == 1 else term * _number(factor, term.dtype)
        elif abs(factor) == 1:
            total = total + term if factor == 1 else total - term
        else:
            total = total + term * _number(factor, term.dtype)
    assert total is not None, "no row is all 0"
    return total


def _number(factor: Fraction, dtype: DType) -> Constant:
    return Constant(float(factor) if dtype.is_float else int(factor), dtype)
