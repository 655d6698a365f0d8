"""Loops of convolutions that no pass made contractions of."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..graph.operators.contractions import Convolution
from ..loops.expressions import Binary, BinaryFunction, Buffer, Constant, Expr, Load
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, Stmt, Store, Update, block, loops
from .operand import Anchor, Operand, Result, Scope, converted, index, over, zero

__all__ = ["CONVOLUTIONS"]


def convolution(
    operator: Convolution, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """One element of the output after the other; what lies outside the input is not read."""
    x, w = operands
    result, dtype = results[0], operator.dtype
    rank, per_group = len(operator.strides), w.type.shape[1]
    shape = result.type.shape
    if 0 in shape:
        return block()
    outer, (batch, channel, *places) = over(shape, "o", scope)
    group = Binary(BinaryFunction.FLOORDIV, channel, index(shape[1] // operator.groups))
    inner, (depth, *taps) = over(w.type.shape[1:], "k", scope)
    inside: Expr | None = None
    where: list[Expr] = []
    for i in range(rank):
        at: Expr = places[i] * operator.strides[i] + taps[i] * operator.dilations[i]
        at = at - operator.pads[i][0]
        step, size = operator.expansions[i], x.type.shape[2 + i]
        condition = (at >= 0) & (at < (size - 1) * step + 1)
        if step > 1:
            condition = condition & Binary(BinaryFunction.EQ, at % step, zero())
        inside = condition if inside is None else inside & condition
        where.append(at // step if step > 1 else at)
    assert inside is not None
    nought = Constant(0, dtype)
    source = (batch, group * per_group + depth, *where)
    value = converted(x.where(inside, source, Constant(0, x.type.dtype)), dtype)
    product = Binary(BinaryFunction.MUL, value, converted(w[(channel, depth, *taps)], dtype))
    total = Buffer(scope.fresh("acc"), (), dtype, Memory.REGISTER)
    body = block(
        Store(total, (), nought),
        loops(inner, Update(total, (), BinaryFunction.ADD, product)),
        result.store((batch, channel, *places), Load(total, ())),
    )
    return loops(outer, Allocate(total, body))


CONVOLUTIONS: Mapping[type[Any], Anchor] = {Convolution: convolution}
