"""Windows reduced along all dimensions but the last, into padded rows, then along the last."""

from dataclasses import replace
from math import prod

from ..define.operand import over
from ..graph.operators.windows import WindowReduce
from ..loops.expressions import Buffer, Expr, Variable
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, Stmt, Store, block, loops
from .window_loops import Position, Reduction, by_lanes, window_count

__all__ = ["reduce_rows", "worth_rows"]

ROW_VECTORS = 4
"""Registers that take the elements of a row together, as windows are reduced down to rows."""

MOST_PADDING = 1024
"""Elements of a row that may lie outside of the tensor, and as many as are inside."""


def worth_rows(operator: WindowReduce, shape: tuple[int, ...]) -> bool:
    """Whether windows lie along the last dimension, and padding or their size make rows faster."""
    *above, (axis, kernel, stride, dilation, pads) = operator.each()
    if axis != len(shape) - 1 or min(pads) < 0:
        return False
    if any(each[3] > 1 for each in above) or operator.axes != tuple(sorted(set(operator.axes))):
        return False
    length = (window_count(shape[axis], kernel, stride, dilation, pads) - 1) * stride
    length += (kernel - 1) * dilation + 1
    return length <= MOST_PADDING + 2 * shape[axis] and (
        max(pads) > 0 or prod(operator.kernel) >= 9
    )


def reduce_rows(reduction: Reduction) -> Stmt:
    """The loops, for an operator that ``worth_rows`` accepts."""
    operator, x, scope, first = reduction.operator, reduction.x, reduction.scope, reduction.first
    shape, last = reduction.result.type.shape, x.type.rank - 1
    _, kernel, stride, dilation, pads = operator.each()[-1]
    length = (shape[last] - 1) * stride + (kernel - 1) * dilation + 1
    used = min(x.type.shape[last], length - pads[0])
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
        position = Position(above, x, (*around, *place), scope)

        def store(total: Expr) -> Stmt:
            return Store(rows, (*place[:-1], place[-1] + pads[0]), total)

        return reduction.combined(position.loops, x[position.where], store, lane, lanes)

    def across(place: tuple[Expr, ...], lane: str, lanes: int) -> Stmt:
        tap = scope.fresh("k")
        value = rows[(*place[:-1], place[-1] * stride + Variable(tap) * dilation)]

        def store(total: Expr) -> Stmt:
            return reduction.result.store((*around, *place), total)

        return reduction.combined([(tap, kernel)], value, store, lane, lanes)

    edge = scope.fresh("e")
    lines, row = over(inner, "o", scope)
    edges = [
        loops((*lines, (edge, end - start)), Store(rows, (*row, Variable(edge) + start), first))
        for start, end in ((0, pads[0]), (pads[0] + used, length))
        if start < end
    ]
    body = block(
        *edges,
        by_lanes((*inner, used), ROW_VECTORS * reduction.lanes, down, scope),
        by_lanes((*inner, shape[last]), reduction.lanes, across, scope),
    )
    return loops(outer, Allocate(rows, body))
