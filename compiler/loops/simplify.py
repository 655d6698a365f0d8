"""Simpler expressions of the same value.

Indices (int64) are brought to quasi-affine normal form, where

    (8*q + r) // 8  ->  q + r // 8       (x // 4) // 2       ->  x // 8
    (8*q + r) % 8   ->  r % 8            (x % 8) % 4         ->  x % 4
    (6*x + 3) // 4  ->  (3*x + 1) // 2   4*(x // 4) + x % 4  ->  x

and ``//``, ``%``, ``min``, ``max`` and comparisons vanish where ranges and guards decide them.  Of
all dtypes constants are folded, and choices that are decided taken.
"""

import math
from typing import Any

from ..dtypes import DType
from .affine import Linear
from .arithmetic import binary, cast, constant, unary
from .bounds import Bounds
from .expressions import (
    COMPARISONS,
    Binary,
    BinaryFunction,
    Cast,
    Constant,
    Expr,
    Select,
    Unary,
    UnaryFunction,
    Variable,
)
from .rewrite import with_operands
from .traverse import fold

__all__ = ["Simplifier", "simplify"]

TRUE = Constant(True, DType.BOOL)
FALSE = Constant(False, DType.BOOL)


def simplify(expr: Expr, bounds: Bounds | None = None) -> Expr:
    """``expr`` in simpler form; equal wherever the bounds hold."""
    return Simplifier(bounds or Bounds()).expr(expr)


class Simplifier:
    """Simplifies expressions at one place of a program, remembering what it has seen."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._memo: dict[int, tuple[Expr, tuple[Expr, Linear | None]]] = {}

    def expr(self, expr: Expr) -> Expr:
        """The simpler expression."""
        if type(expr) is Constant:
            return expr
        return fold(expr, self._combine, self._memo)[0]

    def linear(self, expr: Expr) -> Linear:
        """The normal form of an int64 expression."""
        form = fold(expr, self._combine, self._memo)[1]
        assert form is not None, "of an index"
        return form

    def _combine(
        self, expr: Expr, below: tuple[tuple[Expr, Linear | None], ...]
    ) -> tuple[Expr, Linear | None]:
        if isinstance(expr, Constant):
            is_index = expr.dtype is DType.INT64
            return expr, Linear(int(expr.value), {}) if is_index else None
        if isinstance(expr, Variable):
            own = self._variable(expr) if expr.dtype is DType.INT64 else None
            return expr if own is None or own.terms else own.to_expr(), own
        operands: tuple[Expr, ...] = ()
        forms: tuple[Linear | None, ...] = ()
        if below:
            operands, forms = zip(*below, strict=True)
        if expr.dtype is DType.INT64:
            form = self._index(expr, operands, forms)
            return form.to_expr(), form
        return self._other(expr, operands, forms), None

    def _variable(self, expr: Variable) -> Linear:
        low, high = self.bounds.ranges.get(expr.name, (0, 1))
        return Linear(low, {}) if low == high else Linear(0, {expr: 1})

    def _index(
        self, expr: Expr, operands: tuple[Expr, ...], forms: tuple[Linear | None, ...]
    ) -> Linear:
        if isinstance(expr, Binary):
            left, right = forms
            assert left is not None
            assert right is not None
            function = expr.function
            if function is BinaryFunction.ADD:
                return self._rejoined(left + right)
            if function is BinaryFunction.SUB:
                return self._rejoined(left - right)
            match function, right.value:
                case BinaryFunction.MUL, int(factor):
                    return left * factor
                case BinaryFunction.MUL, _ if not left.terms:
                    return right * left.constant
                case BinaryFunction.FLOORDIV, int(divisor) if divisor > 0:
                    return self.floordiv(left, divisor)
                case BinaryFunction.MOD, int(divisor) if divisor > 0:
                    return self.mod(left, divisor)
                case ((BinaryFunction.MIN | BinaryFunction.MAX), _):
                    decided = self._extreme(function, left, right)
                    if decided is not None:
                        return decided
        if isinstance(expr, Unary) and expr.function is UnaryFunction.NEG:
            assert forms[0] is not None
            return forms[0] * -1
        simple = self._other(expr, operands, forms)
        if isinstance(simple, Constant):
            return Linear(int(simple.value), {})
        if isinstance(expr, Select) and not isinstance(simple, Select):
            chosen = forms[1] if simple is operands[1] else forms[2]
            assert chosen is not None
            return chosen
        return Linear(0, {simple: 1})

    def floordiv(self, form: Linear, divisor: int) -> Linear:
        """``form // divisor``."""
        if divisor == 1:
            return form
        whole, rest = self._divided(form, divisor)
        low, high = self._limits(rest)
        if low // divisor == high // divisor:
            return whole.shifted(low // divisor)
        shared = math.gcd(divisor, *rest.terms.values())
        if shared > 1:
            rest = Linear(rest.constant // shared, {a: f // shared for a, f in rest.terms.items()})
            return whole + self.floordiv(rest, divisor // shared)
        match rest.atom:
            case Binary(function=BinaryFunction.FLOORDIV, left=inner, right=Constant(value=by)):
                return whole + self.floordiv(self.linear(inner), divisor * int(by))
        coarse = self._coarse(rest, divisor)
        if coarse:
            return whole + self.floordiv(coarse[0], divisor // coarse[1])
        quotient = Binary(BinaryFunction.FLOORDIV, rest.to_expr(), Constant(divisor, DType.INT64))
        return whole + Linear(0, {quotient: 1})

    def mod(self, form: Linear, divisor: int) -> Linear:
        """``form % divisor``."""
        if divisor == 1:
            return Linear(0, {})
        _, rest = self._divided(form, divisor)
        low, high = self._limits(rest)
        if low // divisor == high // divisor:
            return rest.shifted(-(low // divisor) * divisor)
        shared = math.gcd(divisor, *rest.terms.values())
        if shared > 1:
            inner = Linear(rest.constant // shared, {a: f // shared for a, f in rest.terms.items()})
            return self.mod(inner, divisor // shared) * shared + Linear(rest.constant % shared, {})
        coarse = self._coarse(rest, divisor)
        if coarse:
            upper, step = coarse
            return self.mod(upper, divisor // step) * step + (rest - upper * step)
        opened = Linear(rest.constant, {})
        for atom, factor in rest.terms.items():
            match atom:
                case Binary(
                    function=BinaryFunction.MOD, left=inner_expr, right=Constant(value=by)
                ) if int(by) > 0 and int(by) % divisor == 0:
                    opened = opened + self.linear(inner_expr) * factor
                case _:
                    opened = opened + Linear(0, {atom: factor})
        if opened.terms != rest.terms:
            return self.mod(opened, divisor)
        remainder = Binary(BinaryFunction.MOD, rest.to_expr(), Constant(divisor, DType.INT64))
        return Linear(0, {remainder: 1})

    def _divided(self, form: Linear, divisor: int) -> tuple[Linear, Linear]:
        """``form = divisor * first + second``; the second is not negative if its constant can help.

        It has no term that the divisor divides.
        """
        whole, rest = _split(form, divisor)
        taken = whole.constant
        if taken > 0 and self._limits(rest)[0] < 0 <= self._limits(rest)[0] + taken * divisor:
            return whole.shifted(-taken), rest.shifted(taken * divisor)
        return whole, rest

    def _coarse(self, form: Linear, divisor: int) -> tuple[Linear, int] | None:
        """``u`` and a divisor ``s`` of ``divisor`` for which ``form = s * u + v``, 0 <= v < s."""
        for step in sorted({math.gcd(factor, divisor) for factor in form.terms.values()}):
            if step > 1:
                upper, rest = _split(form, step)
                low, high = self._limits(rest)
                if low >= 0 and high < step and upper.terms:
                    return upper, step
        return None

    def _limits(self, form: Linear) -> tuple[int, int]:
        if not self.bounds.facts:
            return self.bounds.interval(form)
        return self.bounds.lower(form), self.bounds.upper(form)

    def _rejoined(self, form: Linear) -> Linear:
        """With ``c*(x // c) + x % c`` put together to ``x``."""
        if len(form.terms) < 2:
            return form
        for atom, factor in form.terms.items():
            match atom:
                case Binary(function=BinaryFunction.MOD, left=inner, right=Constant(value=by) as c):
                    quotient = Binary(BinaryFunction.FLOORDIV, inner, c)
                    if form.terms.get(quotient) == factor * int(by):
                        rest = {a: f for a, f in form.terms.items() if a not in (atom, quotient)}
                        whole = Linear(form.constant, rest) + self.linear(inner) * factor
                        return self._rejoined(whole)
        return form

    def _extreme(self, function: BinaryFunction, left: Linear, right: Linear) -> Linear | None:
        low, high = self._limits(left - right)
        if function is BinaryFunction.MAX:
            left, right = right, left
        if high <= 0:
            return left
        return right if low >= 0 else None

    def _other(
        self, expr: Expr, operands: tuple[Expr, ...], forms: tuple[Linear | None, ...]
    ) -> Expr:
        """Simplified, of any dtype, from simplified operands."""
        match expr:
            case Binary(function=function):
                return self._binary(function, operands, forms)
            case Select():
                condition, chosen, other = operands
                if isinstance(condition, Constant):
                    return chosen if condition.value else other
                if chosen is other:
                    return chosen
            case Cast(dtype=dtype):
                inner = operands[0]
                if inner.dtype is dtype:
                    return inner
                if isinstance(inner, Constant):
                    value = cast(inner.dtype, dtype)(constant(inner.value, inner.dtype))
                    return _constant(value, dtype)
            case Unary(function=test):
                inner = operands[0]
                if isinstance(inner, Constant):
                    value = unary(test, inner.dtype)(constant(inner.value, inner.dtype))
                    return _constant(value, expr.dtype)
        return with_operands(expr, operands)

    def _binary(
        self, function: BinaryFunction, operands: tuple[Expr, ...], forms: tuple[Linear | None, ...]
    ) -> Expr:
        left, right = operands
        if isinstance(left, Constant) and isinstance(right, Constant):
            dtype = left.dtype
            compute = binary(function, dtype)
            try:
                value = compute(constant(left.value, dtype), constant(right.value, dtype))
            except ArithmeticError:
                return Binary(function, left, right)
            return _constant(value, DType.BOOL if function in COMPARISONS else dtype)
        if function in COMPARISONS and forms[0] is not None and forms[1] is not None:
            decided = self._comparison(function, forms[0] - forms[1])
            return Binary(function, left, right) if decided is None else decided
        if left.dtype is DType.BOOL:
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Constant):
                    match function, bool(one.value):
                        case (BinaryFunction.AND, True) | (BinaryFunction.OR, False):
                            return other
                        case BinaryFunction.AND, False:
                            return FALSE
                        case BinaryFunction.OR, True:
                            return TRUE
        match function, right:
            case ((BinaryFunction.MUL | BinaryFunction.DIV), Constant(value=1)):
                return left
        match function, left:
            case BinaryFunction.MUL, Constant(value=1):
                return right
        return Binary(function, left, right)

    def _comparison(self, function: BinaryFunction, difference: Linear) -> Constant | None:
        low, high = self._limits(difference)
        match function:
            case BinaryFunction.LT:
                return TRUE if high < 0 else FALSE if low >= 0 else None
            case BinaryFunction.LE:
                return TRUE if high <= 0 else FALSE if low > 0 else None
        apart = low > 0 or high < 0
        if not apart and not low == high == 0:
            return None
        return TRUE if apart == (function is BinaryFunction.NE) else FALSE


def _split(form: Linear, divisor: int) -> tuple[Linear, Linear]:
    """``form = divisor * first + second``; the second has no term that the divisor divides."""
    whole = {atom: f // divisor for atom, f in form.terms.items() if f % divisor == 0}
    rest = {atom: f for atom, f in form.terms.items() if f % divisor}
    return Linear(form.constant // divisor, whole), Linear(form.constant % divisor, rest)


def _constant(value: Any, dtype: DType) -> Constant:
    if dtype is DType.BOOL:
        return Constant(bool(value), dtype)
    return Constant(float(value) if dtype.is_float else int(value), dtype)
