"""Loops of reductions over sliding windows."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from ..define.operand import Operand, Result, index, over, zero
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
from ..loops.ir import Allocate, If, LoopKind, Stmt, Store, block, loops
from .scope import Anchor, Scope
from .window_loops import Position, Reduction, by_lanes
from .window_rows import reduce_rows, worth_rows

__all__ = ["WINDOWS"]

MOST_TAPS = 25
"""Of windows whose taps are written out."""


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
    reduction = Reduction(operator, x, result, scope, function, first)
    if worth_rows(operator, x.type.shape):
        return reduce_rows(reduction)
    if len(shape) - 1 not in operator.axes and shape[-1] > 1:
        return _by_parts(reduction)

    def piece(place: tuple[Expr, ...], lane: str, lanes: int) -> Stmt:
        position = Position(operator, x, place, scope, len(shape) - 1)
        value = reduction.value(position)

        def store(total: Expr) -> Stmt:
            return result.store(place, total)

        return reduction.combined(position.loops, value, store, lane, lanes)

    return by_lanes(shape, reduction.lanes, piece, scope)


def _by_parts(reduction: Reduction) -> Stmt:
    """Vectors along the last dimension; windows inside of the tensor by themselves.

    Their taps are written out, where they are few.  Threads share the first dimension that windows
    move in: what they read is then near the thread that wrote it.
    """
    operator, x, scope = reduction.operator, reduction.x, reduction.scope
    shape = reduction.result.type.shape
    spans = {axis: [(0, size, False)] for axis, size in enumerate(shape[:-1])}
    for axis, kernel, stride, dilation, pads in operator.each():
        spans[axis] = _spans(shape[axis], x.type.shape[axis], kernel, stride, dilation, pads)

    order = list(spans)
    if scope.machine.threads > 1:
        order.sort(key=lambda axis: axis != operator.axes[0])

    def nest(place: dict[int, Expr], whole: frozenset[int]) -> Stmt:
        if len(place) < len(order):
            return block(*(part(place, whole, span) for span in spans[order[len(place)]]))
        inside = whole >= frozenset(operator.axes)
        kind = LoopKind.SERIAL
        if inside and prod(operator.kernel) <= MOST_TAPS:
            kind = LoopKind.UNROLLED

        def piece(last: tuple[Expr, ...], lane: str, lanes: int) -> Stmt:
            everything = (*(place[axis] for axis in range(len(order))), *last)
            position = Position(operator, x, everything, scope, None, whole)
            value = reduction.value(position)

            def store(total: Expr) -> Stmt:
                return reduction.result.store(everything, total)

            return reduction.combined(position.loops, value, store, lane, lanes, kind)

        return by_lanes(shape[-1:], reduction.lanes, piece, scope)

    def part(place: dict[int, Expr], whole: frozenset[int], span: tuple[int, int, bool]) -> Stmt:
        start, count, inside = span
        name, axis = scope.fresh("o"), order[len(place)]
        own: Expr = Variable(name) + start if start else Variable(name)
        inner = {**place, axis: own if count > 1 else index(start)}
        body = nest(inner, whole | ({axis} if inside else set()))
        return loops(((name, count),), body) if count > 1 else body

    return nest({}, frozenset())


def _spans(
    count: int, size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int]
) -> list[tuple[int, int, bool]]:
    """First window, number of windows and whether they are inside, along one dimension."""
    reach = (kernel - 1) * dilation
    start = min(max(-(-pads[0] // stride), 0), count)
    end = min(max((size - 1 - reach + pads[0]) // stride + 1, start), count)
    spans = [(0, start, False), (start, end - start, True), (end, count - end, False)]
    return [each for each in spans if each[1]]


def window_argmax(
    operator: WindowArgMax, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """The best value so far and its index; of floats, the first NaN is the best."""
    (x,), (result,) = operands, results
    shape, dtype = result.type.shape, x.type.dtype
    if 0 in shape:
        return block()
    outer, place = over(shape, "o", scope)
    position = Position(operator, x, place, scope)
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
        loops(tuple(position.loops), take),
        result.store(place, Load(found, ())),
    )
    return loops(outer, Allocate(best, Allocate(found, body)))


WINDOWS: Mapping[type[Any], Anchor] = {
    WindowArgMax: window_argmax,
    WindowReduce: window_reduce,
}
