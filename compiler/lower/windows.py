"""Loops of reductions over sliding windows."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..dtypes import DType
from ..graph.operators.windows import WindowArgMax, WindowFunction, WindowReduce, lowest
from ..loops.expressions import (
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
from ..loops.ir import Allocate, If, LoopKind, Stmt, Store, Update, block, loops
from .operand import Anchor, Operand, Result, Scope, index, over, zero

__all__ = ["WINDOWS"]


class _Position:
    """The loops over one window: where its elements are, and which of them are in the tensor."""

    def __init__(
        self, operator: WindowReduce | WindowArgMax, x: Operand, place: Sequence[Expr], scope: Scope
    ) -> None:
        self.loops = tuple((scope.fresh("k"), size) for size in operator.kernel)
        where = list(place)
        self.inside: Expr | None = None
        for (name, _), (axis, kernel, stride, dilation, pads) in zip(
            self.loops, operator.each(), strict=True
        ):
            size = x.type.shape[axis]
            at: Expr = place[axis] * stride + Variable(name) * dilation
            at = at - pads[0] if pads[0] else at
            last = _windows(size, kernel, stride, dilation, pads) - 1
            conditions = []
            if pads[0] > 0:
                conditions.append(at >= 0)
            if last * stride + (kernel - 1) * dilation - pads[0] >= size:
                conditions.append(at < size)
            for condition in conditions:
                self.inside = condition if self.inside is None else self.inside & condition
            where[axis] = at
        self.where = tuple(where)


def _windows(size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int]) -> int:
    return (size + sum(pads) - (kernel - 1) * dilation - 1) // stride + 1


def window_reduce(
    operator: WindowReduce, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """Vectors of windows that are neighbours in the last dimension."""
    (x,), (result,) = operands, results
    shape = result.type.shape
    if 0 in shape:
        return block()
    dtype = x.type.dtype
    maximum = operator.function == WindowFunction.MAX
    first = Constant(lowest(dtype.numpy) if maximum else 0, dtype)
    function = BinaryFunction.MAX if maximum else BinaryFunction.ADD
    if dtype == DType.BOOL:
        function = BinaryFunction.OR

    def piece(place: tuple[Expr, ...], lane: str, lanes: int) -> Stmt:
        position = _Position(operator, x, place, scope)
        total = Buffer(scope.fresh("acc"), (lanes,), dtype, Memory.REGISTER)
        at = (Variable(lane),) if lanes > 1 else (zero(),)
        value = x[position.where] if position.inside is None else None
        if position.inside is not None:
            value = x.where(position.inside, position.where, first)
        assert value is not None

        def wide(body: Stmt) -> Stmt:
            return loops(((lane, lanes),), body, LoopKind.VECTOR) if lanes > 1 else body

        return Allocate(
            total,
            block(
                wide(Store(total, at, first)),
                loops(position.loops, wide(Update(total, at, function, value))),
                wide(result.store(place, Load(total, at))),
            ),
        )

    return _by_lanes(shape, max(64 // max(dtype.bytes, 1), 1), piece, scope)


def _by_lanes(shape: tuple[int, ...], width: int, piece: Any, scope: Scope) -> Stmt:
    """``piece(place, lane, lanes)`` for every vector of the last dimension, and the rest of it."""
    if not shape:
        return piece((), "", 1)
    outer, place = over(shape[:-1], "o", scope)
    size, done, statements = shape[-1], 0, []
    while done < size:
        lanes = min(width, size - done)
        count = (size - done) // lanes
        name, lane = scope.fresh("o"), scope.fresh("l")
        last: Expr = index(done)
        if count > 1:
            last = Variable(name) * lanes + done if done else Variable(name) * lanes
        if lanes > 1:
            last = last + Variable(lane)
        body = piece((*place, last), lane, lanes)
        statements.append(loops(((name, count),), body) if count > 1 else body)
        done += count * lanes
    return loops(outer, block(*statements))


def window_argmax(
    operator: WindowArgMax, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """The best value so far and its index; of floats, the first NaN is the best."""
    (x,), (result,) = operands, results
    shape, dtype = result.type.shape, x.type.dtype
    if 0 in shape:
        return block()
    outer, place = over(shape, "o", scope)
    position = _Position(operator, x, place, scope)
    best = Buffer(scope.fresh("best"), (), dtype, Memory.REGISTER)
    found = Buffer(scope.fresh("found"), (), DType.INT64, Memory.REGISTER)
    flat: Expr = zero()
    for axis in operator.axes:
        flat = flat * x.type.shape[axis] + position.where[axis]
    value = x[position.where] if position.inside is None else x.guarded(position.where)
    old = Load(best, ())
    better = (Load(found, ()) < 0) | (old < value)
    if dtype.is_float:
        better = better | (
            Unary(UnaryFunction.ISNAN, value)
            & Unary(UnaryFunction.NOT, Unary(UnaryFunction.ISNAN, old))
        )
    take: Stmt = If(better, block(Store(best, (), value), Store(found, (), flat)))
    if position.inside is not None:
        take = If(position.inside, take)
    body = block(
        Store(best, (), Constant(lowest(dtype.numpy), dtype)),
        Store(found, (), index(-1)),
        loops(position.loops, take),
        result.store(place, Load(found, ())),
    )
    return loops(outer, Allocate(best, Allocate(found, body)))


WINDOWS: Mapping[type[Any], Anchor] = {
    WindowArgMax: window_argmax,
    WindowReduce: window_reduce,
}
