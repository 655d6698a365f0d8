"""Simpler programs of the same meaning: every expression simplified at its place, with the ranges
of the loops and the guards around it; branches that are never or always taken, and loops that never
run, vanish; a loop with a guarded body gets shorter, unless a GPU's threads or blocks run it,
of which there are as many in other nests:

    for i in 12: if i + 4 < 12: S   ->   for i in 8: S
"""

from dovetail.isa.frozen import replace

from ..dtypes import DType
from .affine import linear
from .bounds import Bounds
from .expressions import Binary, BinaryFunction, Constant, Expr, Variable
from .fills import fill_of
from .ir import (
    Allocate,
    Block,
    For,
    Function,
    If,
    Invoke,
    Let,
    LoopKind,
    Stmt,
    Store,
    Update,
    While,
    block,
)
from .rewrite import substitute
from .simplify import Simplifier

__all__ = ["canonicalize", "canonicalize_statement"]


def canonicalize(function: Function, *, keep_loops: bool = True) -> Function:
    """The simpler function.

    Loops of one iteration stay unless ``keep_loops`` is false, so that schedules can name them.
    """
    return replace(
        function, body=canonicalize_statement(function.body, Bounds(), keep_loops=keep_loops)
    )


def canonicalize_statement(stmt: Stmt, bounds: Bounds, *, keep_loops: bool = True) -> Stmt:
    """The simpler statement, where ``bounds`` hold; ``Block(())`` where it does nothing."""
    return _Canonicalizer(keep_loops).statement(stmt, Simplifier(bounds))


def _surviving(here: Simplifier, stmt: Stmt) -> Simplifier:
    bounds = here.bounds.surviving(stmt)
    return here if bounds is here.bounds else Simplifier(bounds)


def _limit(condition: Expr, name: str) -> int | None:
    """The K for which the condition is ``name < K``, for a constant K."""
    match condition:
        case Binary(
            function=BinaryFunction.LT | BinaryFunction.LE as function, left=a, right=b
        ) if a.dtype is DType.INT64:
            apart = linear(a) - linear(b)
            if apart.terms == {Variable(name): 1}:
                return -apart.constant + (function is BinaryFunction.LE)
    return None


class _Canonicalizer:
    def __init__(self, keep_loops: bool) -> None:
        self.keep_loops = keep_loops

    def statement(self, stmt: Stmt, here: Simplifier) -> Stmt:
        expr = here.expr
        match stmt:
            case Block(statements=statements):
                parts = []
                for each in statements:
                    parts.append(self.statement(each, here))
                    here = _surviving(here, each)
                return block(*parts)
            case For():
                return self._for(stmt, here)
            case If() if fill_of(stmt) is not None:
                return self._fill(stmt, here)
            case If(condition=condition, then=then, otherwise=otherwise):
                return self._if(expr(condition), then, otherwise, here)
            case While(condition=condition, body=body):
                test = expr(condition)
                if test == Constant(False, DType.BOOL):
                    return Block(())
                return While(test, self.statement(body, _surviving(here, body)))
            case Allocate(body=body):
                inner = self.statement(body, here)
                return inner if inner == Block(()) else replace(stmt, body=inner)
            case Let(variable=variable, value=value, body=body):
                simple = expr(value)
                if isinstance(simple, Constant):
                    return self.statement(substitute(body, {variable.name: simple}), here)
                inside = here
                if variable.dtype is DType.INT64:
                    inside = Simplifier(here.bounds.variable(variable.name, here.bounds.of(simple)))
                inner = self.statement(body, inside)
                return inner if inner == Block(()) else Let(variable, simple, inner)
            case Store(indices=indices, value=value) | Update(indices=indices, value=value):
                return replace(stmt, indices=tuple(map(expr, indices)), value=expr(value))
            case Invoke(operands=regions):
                simple_regions = (
                    replace(region, start=tuple(map(expr, region.start))) for region in regions
                )
                return replace(stmt, operands=tuple(simple_regions))

    def _for(self, stmt: For, here: Simplifier) -> Stmt:
        extent = here.expr(stmt.extent)
        low, high = here.bounds.of(extent)
        if high <= 0:
            return Block(())
        plain = stmt.kind in (LoopKind.SERIAL, LoopKind.UNROLLED, LoopKind.VECTOR)
        if low == high == 1 and plain and not self.keep_loops:
            zero = {stmt.variable: Constant(0, DType.INT64)}
            return self.statement(substitute(stmt.body, zero), here)
        inside = here.bounds.loop(stmt.variable, extent).surviving(stmt.body)
        body = self.statement(stmt.body, Simplifier(inside))
        bound = stmt.kind in (LoopKind.BLOCK, LoopKind.THREAD)
        guarded = isinstance(body, If) and body.otherwise is None
        if isinstance(extent, Constant) and guarded and not bound:
            assert isinstance(body, If)
            limit = _limit(body.condition, stmt.variable)
            if limit is not None and limit < int(extent.value):
                shorter = replace(stmt, extent=Constant(limit, DType.INT64), body=body.then)
                return self._for(shorter, here)
        if body == Block(()):
            return body
        return For(stmt.variable, extent, stmt.kind, body, stmt.annotations)

    def _if(self, condition: Expr, then: Stmt, otherwise: Stmt | None, here: Simplifier) -> Stmt:
        if isinstance(condition, Constant):
            chosen = then if condition.value else otherwise
            return Block(()) if chosen is None else self.statement(chosen, here)
        bounds = here.bounds
        first = self.statement(then, Simplifier(bounds.where(condition)))
        if otherwise is None:
            return first if first == Block(()) else If(condition, first)
        second = self.statement(otherwise, Simplifier(bounds.where(condition, False)))
        return If(condition, first, None if second == Block(()) else second)

    def _fill(self, stmt: If, here: Simplifier) -> Stmt:
        """As any other choice, but both branches say alike where they write."""
        condition = here.expr(stmt.condition)
        if isinstance(condition, Constant):
            return self._if(condition, stmt.then, stmt.otherwise, here)
        copy, zeros = stmt.then, stmt.otherwise
        assert isinstance(copy, Invoke)
        assert isinstance(zeros, For)
        assert isinstance(zeros.body, Store)
        source, target = copy.operands
        inside = Simplifier(here.bounds.where(condition))
        target = replace(target, start=tuple(map(here.expr, target.start)))
        source = replace(source, start=tuple(map(inside.expr, source.start)))
        own = Simplifier(here.bounds.loop(zeros.variable, zeros.extent))
        *first, last = target.start
        places = (*first, own.expr(last + Variable(zeros.variable)))
        filled = replace(zeros, body=replace(zeros.body, indices=places))
        return If(condition, replace(copy, operands=(source, target)), filled)
