"""Loops of contractions: sums of products, one element of the result after the other."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..graph.operators.contractions import Contract
from ..loops.expressions import Binary, BinaryFunction, Buffer, Constant, Expr, Load, Variable
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, Stmt, Store, Update, block, loops
from .operand import Anchor, Operand, Result, Scope, converted, zero
from .places import affine

__all__ = ["CONTRACTIONS", "combine"]


def contract(
    operator: Contract, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """The sum of products."""
    return combine(operator, operands, results[0], scope, BinaryFunction.ADD, 0)


def combine(
    operator: Contract,
    operands: Sequence[Operand],
    result: Result,
    scope: Scope,
    function: BinaryFunction,
    neutral: int | float | bool,
) -> Stmt:
    """A contraction with another function in place of the sum, and its neutral value."""
    if 0 in (operator.sizes[label] for label in operator.kept):
        return block()
    names = {label: scope.fresh("o") for label in operator.kept}
    names |= {label: scope.fresh("k") for label in operator.summed}
    labels: dict[int, Expr] = {
        label: zero() if operator.sizes[label] == 1 else Variable(name)
        for label, name in names.items()
    }
    total = Buffer(scope.fresh("acc"), (), operator.dtype, Memory.REGISTER)
    product: Expr | None = None
    for operand, axes in zip(operands, operator.operands, strict=True):
        place = tuple(affine(axis, labels) for axis in axes)
        factor = converted(operand[place], operator.dtype)
        product = factor if product is None else Binary(BinaryFunction.MUL, product, factor)
    assert product is not None

    def over(chosen: Sequence[int], body: Stmt) -> Stmt:
        nest = ((names[label], operator.sizes[label]) for label in chosen)
        return loops(tuple(each for each in nest if each[1] != 1), body)

    where = tuple(affine(axis, labels) for axis in operator.output)
    body = block(
        Store(total, (), Constant(neutral, operator.dtype)),
        over(operator.summed, Update(total, (), function, product)),
        result.store(where, Load(total, ())),
    )
    return over(operator.kept, Allocate(total, body))


CONTRACTIONS: Mapping[type[Any], Anchor] = {Contract: contract}
