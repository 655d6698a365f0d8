"""Instances of accesses that touch the same element.

Two accesses in iterations ``x`` and ``x + d`` of the loops around both touch one element where
their indices are equal in every dimension.  That, with the ranges of all loops, the guards, and

    0 <= f - c * (f // c) <= c - 1

for each quotient in an index, is a system of linear constraints over integers.  It is solved by
narrowing the unknowns' ranges until nothing changes: an unknown without a value proves that there
is no such pair.  Where nothing is proved, a dependence is assumed.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from dovetail.isa.frozen import frozen

from .accesses import Access
from .affine import Linear
from .bounds import ANY, Interval
from .expressions import Binary, BinaryFunction, Constant, Expr, Load, Variable
from .ir import For
from .simplify import Simplifier
from .traverse import expressions

__all__ = ["Order", "common_loops", "may_meet", "pairs"]

ROUNDS = 16


class Order(StrEnum):
    """When the second of two instances runs, in the iterations of a loop."""

    SAME = "in the same iteration"
    LATER = "in a later iteration"
    EARLIER = "in an earlier iteration"
    ANY = "in any iteration"


def common_loops(first: Access, second: Access) -> tuple[For, ...]:
    """The loops around both, outermost first."""
    both = []
    for one, other in zip(first.loops, second.loops, strict=False):
        if one is not other:
            break
        both.append(one)
    return tuple(both)


def pairs(found: Iterable[Access], *, reductions: bool = False) -> list[tuple[Access, Access]]:
    """Ordered pairs of accesses to one buffer that do not commute; an access with itself too.

    With ``reductions`` also pairs of updates, which commute but must not happen at once.
    """
    by_buffer: dict[str, list[Access]] = {}
    for access in found:
        by_buffer.setdefault(access.buffer.name, []).append(access)
    return [
        (first, second)
        for group in by_buffer.values()
        if any(access.writes for access in group)
        for first in group
        for second in group
        if (first.writes or second.writes) and (reductions or not first.commutes(second))
    ]


def may_meet(first: Access, second: Access, orders: Mapping[str, Order]) -> bool:
    """True if an instance of ``first`` and one of ``second`` may touch the same element.

    ``orders`` is of loops around both, by variable; those not in it may be in any order.
    """
    shared = common_loops(first, second)
    chosen = {loop.variable: orders.get(loop.variable, Order.ANY) for loop in shared}
    inside = None if first.private is None else shared[: first.private]
    if inside and any(chosen[loop.variable] in (Order.LATER, Order.EARLIER) for loop in inside):
        return False
    if inside:
        chosen |= {loop.variable: Order.SAME for loop in inside}
    return _System(first, second, chosen).is_open()


@frozen
class _Key:
    """An unknown: an atom in the first instance, in the second, in both, or the difference."""

    role: str
    atom: Expr

    def __hash__(self) -> int:
        return hash((self.role, self.atom))


@dataclass(slots=True)
class _Constraint:
    low: int
    high: int
    terms: dict[_Key, int]


INFINITE = ANY[1]


class _System:
    def __init__(self, first: Access, second: Access, orders: Mapping[str, Order]) -> None:
        self.sides = {"a": first, "b": second}
        self.orders = orders
        self.common = {loop.variable for loop in common_loops(first, second)}
        self.own = {
            side: {loop.variable for loop in access.loops} - self.common
            | access.within
            | access.lets
            for side, access in self.sides.items()
        }
        self.ranges: dict[_Key, Interval] = {}
        self.constraints: list[_Constraint] = []
        self.quotients: set[tuple[str, Expr]] = set()
        self.simplifiers = {side: Simplifier(each.bounds) for side, each in self.sides.items()}

    def is_open(self) -> bool:
        """True if a solution cannot be ruled out."""
        first, second = self.sides["a"], self.sides["b"]
        for one, other in zip(first.index, second.index, strict=True):
            left, right = self.form("a", one), self.form("b", other)
            self.equal(left, right)
        for side, access in self.sides.items():
            for fact in access.bounds.facts:
                self.limit(*self.form(side, fact), -INFINITE, 0)
        for name, order in self.orders.items():
            atom = Variable(name)
            self.difference(atom, order)
            start = _Key("a", atom)
            if start in self.ranges:
                self.limit(0, {start: 1, _Key("d", atom): 1}, *self.range_of("b", atom))
        return self.solve()

    def difference(self, atom: Expr, order: Order) -> None:
        """Make the unknown by which an atom of the second instance exceeds the first's."""
        key = _Key("d", atom)
        low, high = self.range_of("a", atom)
        other_low, other_high = self.range_of("b", atom)
        least, most = other_low - high, other_high - low
        match order:
            case Order.SAME:
                least, most = 0, 0
            case Order.LATER:
                least = max(least, 1)
            case Order.EARLIER:
                most = min(most, -1)
        known = self.ranges.get(key, (-INFINITE, INFINITE))
        self.ranges[key] = (max(known[0], least), min(known[1], most))

    def range_of(self, side: str, atom: Expr) -> Interval:
        bounds = self.sides[side].bounds
        if isinstance(atom, Variable):
            return bounds.ranges.get(atom.name, ANY)
        return bounds.of(atom)

    def form(self, side: str, form: Linear) -> tuple[int, dict[_Key, int]]:
        """A form in the unknowns of a side."""
        constant, terms = form.constant, dict[_Key, int]()
        for atom, factor in form.terms.items():
            for key, times in self.unknowns(side, atom):
                if key is None:
                    constant += times * factor
                else:
                    terms[key] = terms.get(key, 0) + times * factor
        return constant, {key: factor for key, factor in terms.items() if factor}

    def unknowns(self, side: str, atom: Expr) -> Iterable[tuple[_Key | None, int]]:
        """The terms of an atom that is a sum."""
        match atom:
            case Binary(function=BinaryFunction.MOD, left=inner, right=Constant(value=by)):
                simplifier = self.simplifiers[side]
                whole = simplifier.linear(inner)
                rest = whole - simplifier.floordiv(whole, int(by)) * int(by)
                if rest.terms.get(atom) is None:
                    constant, terms = self.form(side, rest)
                    yield None, constant
                    yield from terms.items()
                    return
        role = self.role(side, atom)
        if role == "=":
            yield self.known(_Key("=", atom), side), 1
        elif role == "common":
            if side == "b":
                if not isinstance(atom, Variable):
                    self.difference(atom, Order.ANY)
                yield _Key("d", atom), 1
            yield self.known(_Key("a", atom), "a"), 1
        else:
            yield self.known(_Key(side, atom), side), 1
        self.quotient(side, atom, role)

    def known(self, key: _Key, side: str) -> _Key:
        if key not in self.ranges:
            self.ranges[key] = self.range_of(side, key.atom)
        return key

    def role(self, side: str, atom: Expr) -> str:
        """``=``: of one value in both instances; ``common``: of both; else of this side only."""
        names = set()
        for node in expressions(atom):
            if isinstance(node, Load):
                return side
            if isinstance(node, Variable):
                names.add(node.name)
        if names & self.own[side]:
            return side
        moving = {name for name in names & self.common if self.orders[name] is not Order.SAME}
        return "common" if moving else "="

    def quotient(self, side: str, atom: Expr, role: str) -> None:
        """Tie ``f // c`` to ``f``."""
        if (side, atom) in self.quotients:
            return
        self.quotients.add((side, atom))
        match atom:
            case Binary(function=BinaryFunction.FLOORDIV, left=inner, right=Constant(value=by)):
                divisor = int(by)
            case _:
                return
        constant, terms = self.form(side, self.simplifiers[side].linear(inner))
        own = {_Key("=" if role == "=" else "a" if role == "common" else side, atom): -divisor}
        if role == "common" and side == "b":
            own[_Key("d", atom)] = -divisor
        together = {**terms}
        for key, factor in own.items():
            together[key] = together.get(key, 0) + factor
        self.limit(constant, together, 0, divisor - 1)
        if role == "common" and side == "b":
            apart = {key: factor for key, factor in together.items() if key.role == "d"}
            rest = {key: factor for key, factor in terms.items() if key.role not in ("d", "=")}
            if all(key.role == "a" for key in rest):
                self.limit(0, apart, 1 - divisor, divisor - 1)

    def equal(self, left: tuple[int, dict[_Key, int]], right: tuple[int, dict[_Key, int]]) -> None:
        terms = dict(left[1])
        for key, factor in right[1].items():
            terms[key] = terms.get(key, 0) - factor
        self.limit(left[0] - right[0], terms, 0, 0)

    def limit(self, constant: int, terms: Mapping[_Key, int], low: int, high: int) -> None:
        """Require ``low <= constant + sum(terms) <= high``."""
        kept = {key: factor for key, factor in terms.items() if factor}
        self.constraints.append(_Constraint(low - constant, high - constant, kept))

    def solve(self) -> bool:
        if any(low > high for low, high in self.ranges.values()):
            return False
        for constraint in self.constraints:
            if constraint.low == constraint.high:
                shared = math.gcd(*constraint.terms.values())
                if (constraint.low % shared if shared else constraint.low) != 0:
                    return False
        for _ in range(ROUNDS):
            changed = False
            for constraint in self.constraints:
                narrowed = self.narrow(constraint)
                if narrowed is None:
                    return False
                changed |= narrowed
            if not changed:
                return True
        return True

    def narrow(self, constraint: _Constraint) -> bool | None:
        """Narrow the ranges of the constraint's unknowns; None when one is left without values."""
        parts = []
        least = most = 0
        for key, factor in constraint.terms.items():
            low, high = self.ranges[key]
            part = (factor * low, factor * high) if factor > 0 else (factor * high, factor * low)
            parts.append((key, factor, part))
            least, most = least + part[0], most + part[1]
        if least > constraint.high or most < constraint.low:
            return None
        if least >= constraint.low and most <= constraint.high:
            return False
        changed = False
        for key, factor, part in parts:
            # factor * unknown is in [floor, ceiling].
            floor = constraint.low - (most - part[1])
            ceiling = constraint.high - (least - part[0])
            if floor <= part[0] and ceiling >= part[1]:
                continue
            if factor < 0:
                floor, ceiling, factor = -ceiling, -floor, -factor
            low, high = self.ranges[key]
            new = (max(low, -(-floor // factor)), min(high, ceiling // factor))
            if new[0] > new[1]:
                return None
            if new != (low, high):
                self.ranges[key] = new
                changed = True
        return changed
