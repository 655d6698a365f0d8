"""Loops of operators on whole rows, which are kept in the cache between their passes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..define.operand import Operand, Result, index, over, zero
from ..graph.operators.rows import SoftmaxRows
from ..loops.expressions import (
    Binary,
    BinaryFunction,
    Buffer,
    Constant,
    Expr,
    Load,
    Unary,
    UnaryFunction,
    Variable,
)
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, Let, LoopKind, Stmt, Store, Update, block, loops
from .scope import Anchor, Scope

__all__ = ["ROWS", "combined_lanes"]

LANES = 16


def combined_lanes(function: BinaryFunction, values: Sequence[Expr]) -> Expr:
    """All values as one, by a tree."""
    found = list(values)
    while len(found) > 1:
        pairs = [Binary(function, a, b) for a, b in zip(found[::2], found[1::2], strict=False)]
        found = pairs + ([found[-1]] if len(found) % 2 else [])
    return found[0]


def softmax_rows(
    operator: SoftmaxRows, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """The maximum, the exponentials and their sum, the quotients: a pass over the row each."""
    (x,), (result,) = operands, results
    *outer, size = x.type.shape
    if 0 in outer:
        return block()
    dtype = x.type.dtype
    nest, place = over(outer, "o", scope)
    lanes = min(LANES, size)
    row = Buffer(scope.fresh("row"), (size,), dtype, Memory.LOCAL)
    best = Buffer(scope.fresh("acc"), (lanes,), dtype, Memory.REGISTER)
    sums = Buffer(scope.fresh("acc"), (lanes,), dtype, Memory.REGISTER)
    top, total = (Variable(scope.fresh("v"), dtype) for _ in range(2))
    value = Variable(scope.fresh("v"), dtype)

    def each(body: Callable[[Expr, Expr], Stmt]) -> Stmt:
        return _vectors(size, lanes, scope, body)

    def start(register: Buffer, first: float) -> Stmt:
        lane = scope.fresh("l")
        return _lanes(lane, lanes, Store(register, (_lane(lane, lanes),), Constant(first, dtype)))

    def across(register: Buffer, function: BinaryFunction) -> Expr:
        return combined_lanes(function, [Load(register, (index(k),)) for k in range(lanes)])

    def find(at: Expr, lane: Expr) -> Stmt:
        keep = block(Store(row, (at,), value), Update(best, (lane,), BinaryFunction.MAX, value))
        where = zero() if size == 1 else at
        return Let(value, x[(*place, where)], keep)

    def weigh(at: Expr, lane: Expr) -> Stmt:
        shifted = Load(row, (at,)) - top
        weight = Unary(UnaryFunction.EXP, shifted)
        if operator.logarithm:
            keep = Store(row, (at,), value)
            add = Update(sums, (lane,), BinaryFunction.ADD, Unary(UnaryFunction.EXP, value))
            return Let(value, shifted, block(keep, add))
        add = Update(sums, (lane,), BinaryFunction.ADD, value)
        return Let(value, weight, block(Store(row, (at,), value), add))

    def finish(at: Expr, lane: Expr) -> Stmt:
        own = Load(row, (at,))
        quotient = own - total if operator.logarithm else own * total
        return result.store((*place, zero() if size == 1 else at), quotient)

    one = Constant(1.0, dtype)
    whole = across(sums, BinaryFunction.ADD)
    scale = (
        Unary(UnaryFunction.LOG, whole)
        if operator.logarithm
        else Binary(BinaryFunction.DIV, one, whole)
    )
    second = Let(
        top,
        across(best, BinaryFunction.MAX),
        block(start(sums, 0.0), each(weigh), Let(total, scale, each(finish))),
    )
    body = block(start(best, float("-inf")), each(find), second)
    return loops(nest, Allocate(row, Allocate(best, Allocate(sums, body))))


def _lane(name: str, lanes: int) -> Expr:
    return Variable(name) if lanes > 1 else zero()


def _lanes(name: str, lanes: int, body: Stmt) -> Stmt:
    return loops(((name, lanes),), body, LoopKind.VECTOR) if lanes > 1 else body


def _vectors(size: int, lanes: int, scope: Scope, body: Callable[[Expr, Expr], Stmt]) -> Stmt:
    """``body(place in the row, lane)`` for whole vectors, and for what is left."""
    whole, rest = divmod(size, lanes)
    name, lane = scope.fresh("k"), scope.fresh("l")
    own = _lane(lane, lanes)
    statements = [
        loops(((name, whole),), _lanes(lane, lanes, body(Variable(name) * lanes + own, own)))
    ]
    if rest:
        lane = scope.fresh("l")
        own = _lane(lane, rest)
        statements.append(_lanes(lane, rest, body(own + whole * lanes, own)))
    return block(*statements)


ROWS: Mapping[type[Any], Anchor] = {SoftmaxRows: softmax_rows}
