"""Loops of operators on whole rows, which are kept between their passes."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..graph.operators.rows import NormalizedRows, SoftmaxRows
from ..loops.expressions import (
    Binary,
    BinaryFunction,
    Buffer,
    Constant,
    Expr,
    Unary,
    UnaryFunction,
    Variable,
)
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, Let, Stmt, Store, Update, block, loops
from .operand import Anchor, Operand, Result, Scope, over

__all__ = ["ROWS"]


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
    row = Buffer(scope.fresh("row"), (size,), dtype, Memory.LOCAL)
    best, sums = (Buffer(scope.fresh("acc"), (), dtype, Memory.REGISTER) for _ in range(2))
    top, total, value = (Variable(scope.fresh("v"), dtype) for _ in range(3))
    each = partial(_each, size, scope)

    def find(at: Expr) -> Stmt:
        keep = block(Store(row, (at,), value), Update(best, (), BinaryFunction.MAX, value))
        return Let(value, x[(*place, at)], keep)

    def weigh(at: Expr) -> Stmt:
        shifted = row[at] - top
        if operator.logarithm:
            add = Update(sums, (), BinaryFunction.ADD, Unary(UnaryFunction.EXP, value))
            return Let(value, shifted, block(Store(row, (at,), value), add))
        keep = block(Store(row, (at,), value), Update(sums, (), BinaryFunction.ADD, value))
        return Let(value, Unary(UnaryFunction.EXP, shifted), keep)

    def finish(at: Expr) -> Stmt:
        quotient = row[at] - total if operator.logarithm else row[at] * total
        return result.store((*place, at), quotient)

    scale = (
        Unary(UnaryFunction.LOG, sums[()])
        if operator.logarithm
        else Binary(BinaryFunction.DIV, Constant(1.0, dtype), sums[()])
    )
    weighed = block(
        Store(sums, (), Constant(0.0, dtype)), each(weigh), Let(total, scale, each(finish))
    )
    body = block(
        Store(best, (), Constant(float("-inf"), dtype)), each(find), Let(top, best[()], weighed)
    )
    return loops(nest, Allocate(row, Allocate(best, Allocate(sums, body))))


def normalized_rows(
    operator: NormalizedRows, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """The row, its sum, the sum of squares, and the quotients: a pass over the row each."""
    (x,), (result,) = operands, results
    *outer, size = x.type.shape
    if 0 in outer:
        return block()
    dtype = x.type.dtype
    nest, place = over(outer, "o", scope)
    row = Buffer(scope.fresh("row"), (size,), dtype, Memory.LOCAL)
    total, squares = (Buffer(scope.fresh("acc"), (), dtype, Memory.REGISTER) for _ in range(2))
    part = Constant(1 / size, dtype)
    each = partial(_each, size, scope)

    def summed(target: Buffer, value: Callable[[Expr], Expr]) -> Stmt:
        def add(at: Expr) -> Stmt:
            return Update(target, (), BinaryFunction.ADD, value(at))

        return block(Store(target, (), Constant(0.0, dtype)), each(add))

    def rest(at: Expr) -> Expr:
        return row[at] - total[()] * part if operator.centred else row[at]

    spread = squares[()] * part + Constant(operator.epsilon, dtype)
    root = Unary(UnaryFunction.SQRT, spread)
    body = block(
        each(lambda at: Store(row, (at,), x[(*place, at)])),
        *([summed(total, lambda at: row[at])] if operator.centred else []),
        summed(squares, lambda at: rest(at) * rest(at)),
        each(lambda at: result.store((*place, at), Binary(BinaryFunction.DIV, rest(at), root))),
    )
    kept = [row, *([total] if operator.centred else []), squares]
    for buffer in reversed(kept):
        body = Allocate(buffer, body)
    return loops(nest, body)


def _each(size: int, scope: Scope, body: Callable[[Expr], Stmt]) -> Stmt:
    """``body`` at every element of a row."""
    along, (at,) = over((size,), "k", scope)
    return loops(along, body(at))


ROWS: Mapping[type[Any], Anchor] = {NormalizedRows: normalized_rows, SoftmaxRows: softmax_rows}
