"""Loops of reductions over sliding windows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from ..dtypes import DType
from ..graph.operators.windows import WindowArgMax, WindowFunction, WindowReduce, lowest
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
from ..loops.ir import Allocate, If, LoopKind, Stmt, Store, Update, block, loops
from .operand import Anchor, Operand, Result, Scope, index, over, zero

__all__ = ["WINDOWS"]

ROW_VECTORS = 4
"""Registers that take the elements of a row together, as windows are reduced down to rows."""

MOST_TAPS = 25
"""Of windows whose taps are written out."""

MOST_PADDING = 1024
"""Elements of a row that may lie outside of the tensor, and as many as are inside."""


class _Position:
    """The loops over one window: where its elements are, and which of them are in the tensor.

    Loops leave out what lies outside, but along the dimension that lies in ``lanes``, and where
    there is dilation: there ``inside`` tells.  Along dimensions ``whole`` nothing lies outside.
    """

    def __init__(
        self,
        operator: WindowReduce | WindowArgMax,
        x: Operand,
        place: Sequence[Expr],
        scope: Scope,
        lanes: int | None = None,
        whole: frozenset[int] = frozenset(),
    ) -> None:
        self.loops: list[tuple[str, Expr | int]] = []
        where = list(place)
        self.inside: Expr | None = None
        for axis, kernel, stride, dilation, pads in operator.each():
            size, name = x.type.shape[axis], scope.fresh("k")
            last = _windows(size, kernel, stride, dilation, pads) - 1
            beyond = last * stride + (kernel - 1) * dilation - pads[0] >= size
            if axis in whole:
                self.loops.append((name, kernel))
                where[axis] = place[axis] * stride + Variable(name) * dilation - pads[0]
                continue
            start = place[axis] * stride - pads[0] if pads[0] else place[axis] * stride
            if dilation == 1 and axis != lanes and (pads[0] > 0 or beyond):
                begin = Binary(BinaryFunction.MAX, start, zero())
                end = Binary(BinaryFunction.MIN, start + kernel, index(size))
                self.loops.append((name, end - begin))
                where[axis] = begin + Variable(name)
                continue
            self.loops.append((name, kernel))
            at = start + Variable(name) * dilation
            conditions = []
            if pads[0] > 0:
                conditions.append(at >= 0)
            if beyond:
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
    if _worth_rows(operator, x.type.shape):
        return _by_rows(operator, x, result, scope, function, first)
    if len(shape) - 1 not in operator.axes and shape[-1] > 1:
        return _by_parts(operator, x, result, scope, function, first)

    def piece(place: tuple[Expr, ...], lane: str, lanes: int) -> Stmt:
        position = _Position(operator, x, place, scope, len(shape) - 1)
        value = x[position.where] if position.inside is None else None
        if position.inside is not None:
            value = x.where(position.inside, position.where, first)
        assert value is not None

        def store(total: Expr) -> Stmt:
            return result.store(place, total)

        return _reduced(function, first, position.loops, value, store, lane, lanes, scope)

    return _by_lanes(shape, max(64 // max(dtype.bytes, 1), 1), piece, scope)


def _by_parts(
    operator: WindowReduce,
    x: Operand,
    result: Result,
    scope: Scope,
    function: BinaryFunction,
    first: Constant,
) -> Stmt:
    """Vectors along the last dimension; windows inside of the tensor by themselves.

    Their taps are written out, where they are few.  Threads share the first dimension that windows
    move in: what they read is then near the thread that wrote it.
    """
    shape = result.type.shape
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
            position = _Position(operator, x, everything, scope, None, whole)
            value = x[position.where]
            if position.inside is not None:
                value = x.where(position.inside, position.where, first)

            def store(total: Expr) -> Stmt:
                return result.store(everything, total)

            return _reduced(function, first, position.loops, value, store, lane, lanes, scope, kind)

        return _by_lanes(shape[-1:], max(64 // max(first.dtype.bytes, 1), 1), piece, scope)

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


def _reduced(
    function: BinaryFunction,
    first: Constant,
    taps: Sequence[tuple[str, Expr | int]],
    value: Expr,
    store: Callable[[Expr], Stmt],
    lane: str,
    lanes: int,
    scope: Scope,
    kind: LoopKind = LoopKind.SERIAL,
) -> Stmt:
    """``value`` of all taps combined in a register for each lane, then stored.

    kind: of the loops over the taps.
    """
    total = Buffer(scope.fresh("acc"), (lanes,), first.dtype, Memory.REGISTER)
    at = (Variable(lane),) if lanes > 1 else (zero(),)

    def wide(body: Stmt) -> Stmt:
        return loops(((lane, lanes),), body, LoopKind.VECTOR) if lanes > 1 else body

    return Allocate(
        total,
        block(
            wide(Store(total, at, first)),
            loops(tuple(taps), wide(Update(total, at, function, value)), kind),
            wide(store(Load(total, at))),
        ),
    )


def _worth_rows(operator: WindowReduce, shape: tuple[int, ...]) -> bool:
    """Whether windows lie along the last dimension, and padding or their size make rows faster."""
    *above, (axis, kernel, stride, dilation, pads) = operator.each()
    if axis != len(shape) - 1 or min(pads) < 0:
        return False
    if any(each[3] > 1 for each in above) or operator.axes != tuple(sorted(set(operator.axes))):
        return False
    length = (_windows(shape[axis], kernel, stride, dilation, pads) - 1) * stride
    length += (kernel - 1) * dilation + 1
    return length <= MOST_PADDING + 2 * shape[axis] and (
        max(pads) > 0 or prod(operator.kernel) >= 9
    )


def _by_rows(
    operator: WindowReduce,
    x: Operand,
    result: Result,
    scope: Scope,
    function: BinaryFunction,
    first: Constant,
) -> Stmt:
    """Windows reduced along all dimensions but the last, into padded rows, then along the last."""
    shape, last = result.type.shape, x.type.rank - 1
    _, kernel, stride, dilation, pads = operator.each()[-1]
    length = (shape[last] - 1) * stride + (kernel - 1) * dilation + 1
    used = min(x.type.shape[last], length - pads[0])
    width = max(64 // max(first.dtype.bytes, 1), 1)
    outer, around = over(shape[: operator.axes[0]], "o", scope)
    inner = shape[operator.axes[0] : last]
    rows = Buffer(scope.fresh("rows"), (*inner, length), first.dtype, Memory.LOCAL)
    above = replace(
        operator,
        axes=operator.axes[:-1],
        kernel=operator.kernel[:-1],
        strides=operator.strides[:-1],
        dilations=operator.dilations[:-1],
        pads=operator.pads[:-1],
    )

    def down(place: tuple[Expr, ...], lane: str, lanes: int) -> Stmt:
        position = _Position(above, x, (*around, *place), scope)

        def store(total: Expr) -> Stmt:
            return Store(rows, (*place[:-1], place[-1] + pads[0]), total)

        value = x[position.where]
        return _reduced(function, first, position.loops, value, store, lane, lanes, scope)

    def across(place: tuple[Expr, ...], lane: str, lanes: int) -> Stmt:
        tap = scope.fresh("k")
        value = rows[(*place[:-1], place[-1] * stride + Variable(tap) * dilation)]

        def store(total: Expr) -> Stmt:
            return result.store((*around, *place), total)

        return _reduced(function, first, [(tap, kernel)], value, store, lane, lanes, scope)

    edge = scope.fresh("e")
    lines, row = over(inner, "o", scope)
    edges = [
        loops((*lines, (edge, end - start)), Store(rows, (*row, Variable(edge) + start), first))
        for start, end in ((0, pads[0]), (pads[0] + used, length))
        if start < end
    ]
    body = block(
        *edges,
        _by_lanes((*inner, used), ROW_VECTORS * width, down, scope),
        _by_lanes((*inner, shape[last]), width, across, scope),
    )
    return loops(outer, Allocate(rows, body))


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
        loops(tuple(position.loops), take),
        result.store(place, Load(found, ())),
    )
    return loops(outer, Allocate(best, Allocate(found, body)))


WINDOWS: Mapping[type[Any], Anchor] = {
    WindowArgMax: window_argmax,
    WindowReduce: window_reduce,
}
