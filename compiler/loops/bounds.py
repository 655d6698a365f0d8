"""Facts about the values of indices: ranges of variables, and guards.

``Bounds`` is what holds at a place in a program.  Its ranges come from the extents of the loops
around the place; its facts, forms that are at most 0, from conditions and from extents that are not
constant.  A fact about an element of a buffer holds until something writes the buffer, which
``surviving`` sees to.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import field

from dovetail.isa.frozen import frozen

from ..dtypes import DType
from .affine import Linear, linear
from .arithmetic import integer_limits
from .expressions import (
    Binary,
    BinaryFunction,
    Cast,
    Constant,
    Expr,
    Load,
    Select,
    Unary,
    UnaryFunction,
    Variable,
)
from .ir import Stmt
from .traverse import expressions, fold, written

__all__ = ["ANY", "Bounds", "Interval"]

Interval = tuple[int, int]
"""The least and the greatest value; empty when the first is greater."""

FACTS = 2
"""So many facts are added up at most."""

ANY: Interval = integer_limits(DType.INT64)


@frozen
class Bounds:
    """Ranges of variables, and forms that are at most 0."""

    ranges: Mapping[str, Interval] = field(default_factory=dict)
    facts: tuple[Linear, ...] = ()

    def loop(self, name: str, extent: Expr) -> "Bounds":
        """In the body of a loop."""
        ranges = {**self.ranges, name: (0, self.of(extent)[1] - 1)}
        if isinstance(extent, Constant):
            return Bounds(ranges, self.facts)
        return Bounds(ranges, (*self.facts, *_at_most(Variable(name), extent, 1)))

    @property
    def empty(self) -> bool:
        """True if nothing ever runs here."""
        if any(low > high for low, high in self.ranges.values()):
            return True
        return any(self.interval(fact)[0] > 0 for fact in self.facts)

    def variable(self, name: str, interval: Interval) -> "Bounds":
        """With the range of a variable."""
        return Bounds({**self.ranges, name: interval}, self.facts)

    def surviving(self, stmt: Stmt) -> "Bounds":
        """Without the facts about elements of buffers that ``stmt`` writes."""
        if not self.facts:
            return self
        read = {
            node.buffer.name
            for fact in self.facts
            for atom in fact.terms
            if not isinstance(atom, Variable)
            for node in expressions(atom)
            if isinstance(node, Load)
        }
        changed = read & written(stmt) if read else read
        if not changed:
            return self
        kept = tuple(fact for fact in self.facts if not _reads(fact, changed))
        return Bounds(self.ranges, kept)

    def where(self, condition: Expr, holds: bool = True) -> "Bounds":
        """Where a condition holds, or does not."""
        facts = list(self.facts)
        for new in _facts(condition, holds):
            for place, old in enumerate(facts):
                if old.terms == new.terms:
                    facts[place] = old if old.constant >= new.constant else new
                    break
            else:
                facts.append(new)
        return self if facts == list(self.facts) else Bounds(self.ranges, tuple(facts))

    @staticmethod
    def decides(condition: Expr, holds: bool = True) -> bool:
        """True if the facts of ``where`` say all that the condition says."""
        match condition:
            case Constant():
                return True
            case Binary(function=BinaryFunction.AND, left=left, right=right) if holds:
                return Bounds.decides(left) and Bounds.decides(right)
            case Binary(function=BinaryFunction.OR, left=left, right=right) if not holds:
                return Bounds.decides(left, False) and Bounds.decides(right, False)
            case Unary(function=UnaryFunction.NOT, operand=operand):
                return Bounds.decides(operand, not holds)
            case Binary(function=function, left=left) if left.dtype is DType.INT64:
                ordered = function in (BinaryFunction.LT, BinaryFunction.LE)
                return ordered or function is (BinaryFunction.EQ if holds else BinaryFunction.NE)
        return False

    def of(self, expr: Expr) -> Interval:
        """An interval that holds every value of an integer expression, facts left aside."""
        if isinstance(expr, Constant):
            return int(expr.value), int(expr.value)
        return fold(expr, self._combine)

    def interval(self, form: Linear) -> Interval:
        """An interval that holds every value of a form, facts left aside."""
        low = high = form.constant
        for atom, factor in form.terms.items():
            known = self.ranges.get(atom.name, ANY) if isinstance(atom, Variable) else self.of(atom)
            if factor > 0:
                low, high = low + factor * known[0], high + factor * known[1]
            else:
                low, high = low + factor * known[1], high + factor * known[0]
        return low, high

    def upper(self, form: Linear, depth: int = FACTS) -> int:
        """A number that no value of the form exceeds; up to ``depth`` facts are added up."""
        best = self.interval(form)[1] if not self.facts else self._greatest(form, depth)
        if depth == FACTS:
            best = min(best, self._by_cases(form, best))
        if depth and self.facts:
            for fact in self.facts:
                for scale, times in _multiples(form, fact):
                    # scale * form = rest + times * fact, and the fact is at most 0.
                    rest = form * scale - fact * times
                    if len(rest.terms) <= len(form.terms) + 1:
                        best = min(best, self.upper(rest, depth - 1) // scale)
        if depth:
            for atom, factor in form.terms.items():
                match atom:
                    case Binary(
                        function=BinaryFunction.FLOORDIV, left=inner, right=Constant(value=by)
                    ) if len(form.terms) > 1:
                        # c * (f // c) is between f - c + 1 and f.
                        divisor = int(by)
                        part = linear(inner) if factor > 0 else linear(inner).shifted(1 - divisor)
                        rest = form - Linear(0, {atom: factor})
                        scaled = rest * divisor + part * factor
                        best = min(best, self.upper(scaled, depth - 1) // divisor)
        return best

    def _by_cases(self, form: Linear, otherwise: int) -> int:
        """As ``upper``, of both cases of the first select, minimum or maximum in the form."""
        for atom, factor in form.terms.items():
            match atom:
                case Select(condition=test, chosen=first, other=second):
                    here, there, least = self.where(test), self.where(test, False), False
                case Binary(
                    function=(BinaryFunction.MIN | BinaryFunction.MAX) as function,
                    left=first,
                    right=second,
                ):
                    here = there = self
                    least = (function is BinaryFunction.MIN) == (factor > 0)
                case _:
                    continue
            rest = form - Linear(0, {atom: factor})
            one = here.upper(rest + linear(first) * factor)
            other = there.upper(rest + linear(second) * factor)
            return min(one, other) if least else max(one, other)
        return otherwise

    def lower(self, form: Linear, depth: int = FACTS) -> int:
        """A number that no value of the form is below."""
        return -self.upper(form * -1, depth)

    def _greatest(self, form: Linear, depth: int) -> int:
        """As ``interval``, with facts about what a quotient is of."""
        high = form.constant
        for atom, factor in form.terms.items():
            match atom:
                case Binary(function=BinaryFunction.FLOORDIV, left=inner, right=Constant(value=by)):
                    part = linear(inner)
                    bound = self.upper(part, depth) if factor > 0 else self.lower(part, depth)
                    high += factor * (bound // int(by))
                case _:
                    high += self.interval(Linear(0, {atom: factor}))[1]
        return high

    def _combine(self, expr: Expr, below: tuple[Interval, ...]) -> Interval:
        limits = integer_limits(expr.dtype) if not expr.dtype.is_float else ANY
        found = self._interval(expr, below)
        wraps = found[0] < limits[0] or found[1] > limits[1]
        return limits if wraps else found

    def _interval(self, expr: Expr, below: tuple[Interval, ...]) -> Interval:
        anything = integer_limits(expr.dtype) if not expr.dtype.is_float else ANY
        match expr:
            case Constant(value=value) if not expr.dtype.is_float:
                return int(value), int(value)
            case Variable(name=name):
                return self.ranges.get(name, anything)
            case Binary(function=function) if not expr.dtype.is_float:
                return _binary(function, below[0], below[1], anything)
            case Unary(function=UnaryFunction.NEG):
                return -below[0][1], -below[0][0]
            case Unary(function=UnaryFunction.ABS):
                low, high = below[0]
                least = 0 if low <= 0 <= high else min(abs(low), abs(high))
                return least, max(abs(low), abs(high))
            case Select():
                return min(below[1][0], below[2][0]), max(below[1][1], below[2][1])
            case Cast(operand=operand) if not operand.dtype.is_float:
                return below[0]
            case Load():
                return anything
        return anything


def _multiples(form: Linear, fact: Linear) -> set[tuple[int, int]]:
    """Positive ``(scale, times)`` of which ``scale * form - times * fact`` lacks a term of both."""
    found = set()
    for atom, factor in fact.terms.items():
        held = form.terms.get(atom, 0)
        if held * factor > 0:
            shared = math.gcd(held, factor)
            found.add((abs(factor) // shared, abs(held) // shared))
    return found


def _reads(form: Linear, names: set[str]) -> bool:
    return any(
        isinstance(node, Load) and node.buffer.name in names
        for atom in form.terms
        for node in expressions(atom)
    )


def _binary(function: BinaryFunction, a: Interval, b: Interval, anything: Interval) -> Interval:
    match function:
        case BinaryFunction.ADD:
            return a[0] + b[0], a[1] + b[1]
        case BinaryFunction.SUB:
            return a[0] - b[1], a[1] - b[0]
        case BinaryFunction.MUL:
            corners = [x * y for x in a for y in b]
            return min(corners), max(corners)
        case BinaryFunction.FLOORDIV if b[0] > 0:
            corners = [x // y for x in a for y in b]
            return min(corners), max(corners)
        case BinaryFunction.MOD if b[0] > 0:
            if b[0] == b[1] and a[0] // b[0] == a[1] // b[0]:
                return a[0] % b[0], a[1] % b[0]
            return 0, b[1] - 1
        case BinaryFunction.DIV if b[0] > 0 and a[0] >= 0:
            return a[0] // b[1], a[1] // b[0]
        case BinaryFunction.REM if b[0] > 0 and a[0] >= 0:
            return 0, min(a[1], b[1] - 1)
        case BinaryFunction.MIN:
            return min(a[0], b[0]), min(a[1], b[1])
        case BinaryFunction.MAX:
            return max(a[0], b[0]), max(a[1], b[1])
    return anything


def _facts(condition: Expr, holds: bool) -> Iterable[Linear]:
    """Forms that are at most 0 where ``condition`` is ``holds``."""
    match condition:
        case Constant(value=value):
            if bool(value) is not holds:
                yield Linear(1, {})
        case Binary(function=BinaryFunction.AND, left=left, right=right) if holds:
            yield from _facts(left, True)
            yield from _facts(right, True)
        case Binary(function=BinaryFunction.OR, left=left, right=right) if not holds:
            yield from _facts(left, False)
            yield from _facts(right, False)
        case Unary(function=UnaryFunction.NOT, operand=operand):
            yield from _facts(operand, not holds)
        case Binary(function=function, left=left, right=right) if left.dtype is DType.INT64:
            match function, holds:
                case BinaryFunction.LT, True:
                    yield from _at_most(left, right, 1)
                case BinaryFunction.LE, True:
                    yield from _at_most(left, right, 0)
                case BinaryFunction.LT, False:
                    yield from _at_most(right, left, 0)
                case BinaryFunction.LE, False:
                    yield from _at_most(right, left, 1)
                case (BinaryFunction.EQ, True) | (BinaryFunction.NE, False):
                    yield from _at_most(left, right, 0)
                    yield from _at_most(right, left, 0)


def _at_most(low: Expr, high: Expr, offset: int) -> Iterable[Linear]:
    """``low + offset <= high``, as forms that are at most 0."""
    return _cases((linear(low) - linear(high)).shifted(offset))


def _cases(form: Linear) -> Iterable[Linear]:
    """Forms that are at most 0 exactly if ``form`` is.

    max(a, b) + c  ->  a + c, b + c            c - min(a, b)  ->  c - a, c - b
    """
    for atom, factor in form.terms.items():
        match atom:
            case Binary(function=function, left=left, right=right) if function is (
                BinaryFunction.MAX if factor > 0 else BinaryFunction.MIN
            ):
                rest = form - Linear(0, {atom: factor})
                for part in (left, right):
                    yield from _cases(rest + linear(part) * factor)
                return
    yield form
