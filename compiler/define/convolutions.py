"""Loops of convolutions that no pass made contractions of."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..graph.operators.contractions import Convolution, PixelConvolution
from ..loops.expressions import Binary, BinaryFunction, Buffer, Constant, Expr, Load
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, Stmt, Store, Update, block, loops
from .operand import Anchor, Operand, Result, Scope, converted, index, over, zero

__all__ = ["CONVOLUTIONS"]


def convolution(
    operator: Convolution, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """One element of the output after the other; what is outside the input is not read."""
    return _loops(operator, operands, results[0], scope, 1)


def pixel_convolution(
    operator: PixelConvolution, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """The same, with the channels of all three last."""
    own = operator.convolution
    return _loops(own, operands, results[0], scope, len(own.strides) + 1)


def _loops(
    operator: Convolution, operands: Sequence[Operand], result: Result, scope: Scope, axis: int
) -> Stmt:
    """axis: of the channels."""
    x, w = operands
    dtype = operator.dtype
    rank = len(operator.strides)
    shape = result.type.shape
    if 0 in shape:
        return block()
    outer, (batch, *places) = over(shape, "o", scope)
    channel = places.pop(axis - 1)
    inner, taps = over(w.type.shape[1:], "k", scope)
    depth, taps = taps[axis - 1], (*taps[: axis - 1], *taps[axis:])
    sizes = [size for place, size in enumerate(x.type.shape) if place not in (0, axis)]
    group = Binary(BinaryFunction.FLOORDIV, channel, index(shape[axis] // operator.groups))
    inside: Expr | None = None
    where: list[Expr] = []
    for i in range(rank):
        at: Expr = places[i] * operator.strides[i] + taps[i] * operator.dilations[i]
        at = at - operator.pads[i][0]
        step, size = operator.expansions[i], sizes[i]
        condition = (at >= 0) & (at < (size - 1) * step + 1)
        if step > 1:
            condition = condition & Binary(BinaryFunction.EQ, at % step, zero())
        inside = condition if inside is None else inside & condition
        where.append(at // step if step > 1 else at)
    assert inside is not None
    nought = Constant(0, dtype)
    source = _at(where, axis - 1, group * w.type.shape[axis] + depth)
    value = converted(x.where(inside, (batch, *source), Constant(0, x.type.dtype)), dtype)
    weight = converted(w[(channel, *_at(taps, axis - 1, depth))], dtype)
    product = Binary(BinaryFunction.MUL, value, weight)
    total = Buffer(scope.fresh("acc"), (), dtype, Memory.REGISTER)
    body = block(
        Store(total, (), nought),
        loops(inner, Update(total, (), BinaryFunction.ADD, product)),
        result.store((batch, *_at(places, axis - 1, channel)), Load(total, ())),
    )
    return loops(outer, Allocate(total, body))


def _at(places: Sequence[Expr], axis: int, channel: Expr) -> tuple[Expr, ...]:
    """The indices with that of the channel among them."""
    return (*places[:axis], channel, *places[axis:])


CONVOLUTIONS: Mapping[type[Any], Anchor] = {
    Convolution: convolution,
    PixelConvolution: pixel_convolution,
}
