"""Quasi-affine normal form of indices.

    Linear = constant + sum(coefficient * atom)

An atom is a variable, or an int64 expression that is not a sum: ``x // 8``, ``x % 8``, ``min(a,
b)``, a load.  Two indices are equal for all values of their atoms exactly if their forms are equal.
Index arithmetic is taken not to overflow int64.
"""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ..dtypes import DType
from .expressions import Binary, BinaryFunction, Constant, Expr, Unary, UnaryFunction, Variable
from .text import expr_to_text
from .traverse import fold

__all__ = ["Linear", "linear"]


@frozen
class Linear:
    """``constant + sum(coefficient * atom)``; no coefficient is 0, ``terms`` never changes."""

    constant: int
    terms: dict[Expr, int]

    def __add__(self, other: "Linear") -> "Linear":
        if not other.terms:
            return Linear(self.constant + other.constant, self.terms) if other.constant else self
        terms = dict(self.terms)
        for atom, factor in other.terms.items():
            total = terms.get(atom, 0) + factor
            if total:
                terms[atom] = total
            else:
                del terms[atom]
        return Linear(self.constant + other.constant, terms)

    def __sub__(self, other: "Linear") -> "Linear":
        return self + other * -1

    def __mul__(self, factor: int) -> "Linear":
        if factor == 1:
            return self
        if factor == 0:
            return Linear(0, {})
        terms = {atom: held * factor for atom, held in self.terms.items()}
        return Linear(self.constant * factor, terms)

    def shifted(self, offset: int) -> "Linear":
        """With ``offset`` added."""
        return Linear(self.constant + offset, self.terms)

    def coefficient(self, name: str) -> int:
        """The factor of the variable ``name``."""
        return self.terms.get(Variable(name), 0)

    def at(self, values: Mapping[str, int]) -> int:
        """The value of a sum of variables, those not in ``values`` at 0."""
        total = self.constant
        for atom, factor in self.terms.items():
            if isinstance(atom, Variable):
                total += factor * values.get(atom.name, 0)
        return total

    def limits(self, extents: Mapping[str, int]) -> tuple[int, int]:
        """Smallest and largest value of a sum of variables, each from 0 to its extent less 1."""
        low = high = self.constant
        for atom, factor in self.terms.items():
            assert isinstance(atom, Variable)
            span = factor * (extents[atom.name] - 1)
            low, high = low + min(span, 0), high + max(span, 0)
        return low, high

    @property
    def value(self) -> int | None:
        """The constant, if there is nothing else."""
        return None if self.terms else self.constant

    @property
    def atom(self) -> Expr | None:
        """The atom, if there is nothing else."""
        if len(self.terms) == 1 and not self.constant:
            ((atom, factor),) = self.terms.items()
            return atom if factor == 1 else None
        return None

    def to_expr(self) -> Expr:
        """As an expression: terms that are added first, greater factors first."""
        ordered = list(self.terms.items())
        if len(ordered) > 1:
            if len(set(self.terms.values())) < len(ordered):
                ordered.sort(key=lambda term: expr_to_text(term[0]))
            ordered.sort(key=lambda term: (term[1] < 0, -abs(term[1])))
        constant = self.constant
        result: Expr | None = None
        if ordered and ordered[0][1] < 0:
            result, constant = Constant(constant, DType.INT64), 0
        for atom, factor in ordered:
            if result is None:
                result = atom if factor == 1 else atom * factor
            elif factor < 0:
                result = result - (atom if factor == -1 else atom * -factor)
            else:
                result = result + (atom if factor == 1 else atom * factor)
        if result is None:
            return Constant(constant, DType.INT64)
        if constant:
            return result + constant if constant > 0 else result - -constant
        return result


def linear(expr: Expr) -> Linear:
    """The form of an int64 expression, as it is: nothing inside an atom is simplified."""
    return fold(expr, combine)


def combine(expr: Expr, below: tuple[Linear, ...]) -> Linear:
    """The form of ``expr`` from those of its operands."""
    if expr.dtype is DType.INT64:
        match expr:
            case Constant(value=value):
                return Linear(int(value), {})
            case Binary(function=BinaryFunction.ADD):
                return below[0] + below[1]
            case Binary(function=BinaryFunction.SUB):
                return below[0] - below[1]
            case Binary(function=BinaryFunction.MUL) if not below[1].terms:
                return below[0] * below[1].constant
            case Binary(function=BinaryFunction.MUL) if not below[0].terms:
                return below[1] * below[0].constant
            case Unary(function=UnaryFunction.NEG):
                return below[0] * -1
            case Variable():
                return Linear(0, {expr: 1})
    return Linear(0, {expr: 1})
