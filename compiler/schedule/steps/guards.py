"""Conditions on indices, under which statements run."""

from collections.abc import Sequence

from dovetail.isa.frozen import replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.affine import Linear, linear
from ...loops.bounds import Bounds
from ...loops.expressions import Binary, BinaryFunction, Constant, Expr, Select
from ...loops.ir import Block, For, If, Stmt, Update
from ...loops.rewrite import with_bodies
from ...loops.traverse import bodies
from .rfactor import identity

__all__ = ["at_least_zero", "conjuncts", "decided", "guard", "together", "unguarded"]


def conjuncts(condition: Expr | None) -> list[Expr]:
    """The conditions that hold together where ``condition`` does; none of None."""
    match condition:
        case None:
            return []
        case Binary(function=BinaryFunction.AND, left=left, right=right):
            return [*conjuncts(left), *conjuncts(right)]
        case _:
            return [condition]


def together(conditions: Sequence[Expr]) -> Expr | None:
    """The condition that all of them hold; None of none."""
    result: Expr | None = None
    for each in conditions:
        result = each if result is None else result & each
    return result


def at_least_zero(condition: Expr) -> Linear | None:
    """The form that a comparison of indices requires to be 0 or more; None for other conditions."""
    match condition:
        case Binary(
            function=BinaryFunction.LT | BinaryFunction.LE as function, left=a, right=b
        ) if a.dtype is DType.INT64:
            return (linear(b) - linear(a)).shifted(-1 if function is BinaryFunction.LT else 0)
        case _:
            return None


def guard(stmt: Stmt) -> Expr | None:
    """The condition under which the only statement in loops does anything; None: it always does."""
    match stmt:
        case For(body=body):
            return guard(body)
        case If(condition=condition, otherwise=None):
            return condition
        case Update(value=Select(condition=condition, other=other)) if _is_neutral(stmt, other):
            return condition
        case _:
            return None


def unguarded(stmt: Stmt, kept: list[Expr], what: str) -> Stmt:
    """``stmt``, guarded by ``kept`` alone.  Raises ScheduleError when it has no guard."""
    condition = together(kept)
    match stmt:
        case For(body=body):
            return replace(stmt, body=unguarded(body, kept, what))
        case If(then=then, otherwise=None):
            return then if condition is None else If(condition, then)
        case Update(value=Select() as value):
            chosen = value.chosen if condition is None else replace(value, condition=condition)
            return replace(stmt, value=chosen)
        case _:
            raise ScheduleError(f"{what}: nothing in it is guarded")


def _is_neutral(update: Update, value: Expr) -> bool:
    neutral = identity(update.function, update.buffer.dtype)
    return isinstance(value, Constant) and value.value == neutral


def decided(stmt: Stmt, bounds: Bounds) -> Stmt:
    """``stmt``, where ``bounds`` hold, without conditions that always hold, and without what never
    runs.
    """
    match stmt:
        case For(variable=name, extent=extent, body=body):
            inner = decided(body, bounds.loop(name, extent))
            return inner if inner == Block(()) else replace(stmt, body=inner)
        case If(condition=condition, then=then, otherwise=otherwise):
            forms = [(each, at_least_zero(each)) for each in conjuncts(condition)]
            if any(form is not None and bounds.upper(form) < 0 for _, form in forms):
                return Block(()) if otherwise is None else decided(otherwise, bounds)
            kept = together(
                [each for each, form in forms if form is None or bounds.lower(form) < 0]
            )
            inner = decided(then, bounds.where(condition))
            if kept is None:
                return inner
            return If(kept, inner, otherwise and decided(otherwise, bounds))
        case _:
            below = bodies(stmt)
            return with_bodies(stmt, tuple(decided(each, bounds) for each in below))
