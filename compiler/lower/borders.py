"""Borders of a constant around results that are written inside them."""

from collections.abc import Sequence

from ..loops.expressions import Buffer, Constant, Expr, Variable
from ..loops.ir import If, LoopKind, Stmt, Store, block, loops
from .operand import Scope, index

__all__ = ["border"]

IMAGE_RANK = 5


def border(buffer: Buffer, pads: Sequence[tuple[int, int]], value: Constant, scope: Scope) -> Stmt:
    """Stores of all elements that are fewer than ``pads`` from an end of a dimension.

    Each once: along a dimension those at its ends, inside of the dimensions before it.  Those of
    images of several channels, float[N, C / B, H, W, B], row by row, for threads to share them.
    """
    if scope.machine.threads > 1 and _is_image(buffer, pads):
        return _rows(buffer, pads, value, scope)
    spans = [(0, size) for size in buffer.shape]
    statements = []
    for axis, (before, after) in enumerate(pads):
        size = buffer.shape[axis]
        for start, end in ((0, before), (size - after, size)):
            if start < end:
                own = [*spans[:axis], (start, end), *spans[axis + 1 :]]
                statements.append(_fill(buffer, own, value, scope))
        spans[axis] = (before, size - after)
    return block(*statements)


def _is_image(buffer: Buffer, pads: Sequence[tuple[int, int]]) -> bool:
    if len(pads) != IMAGE_RANK or buffer.shape[0] != 1 or buffer.shape[1] == 1:
        return False
    return not any(sum(own) for own in (*pads[:2], pads[4])) and min(buffer.shape[2:]) > 1


def _rows(buffer: Buffer, pads: Sequence[tuple[int, int]], value: Constant, scope: Scope) -> Stmt:
    """Whole rows at the top and at the bottom, and both ends of the others."""
    _, channels, rows, columns, lanes = buffer.shape
    (above, below), (left, right) = pads[2:4]
    channel, row = Variable(scope.fresh("e")), Variable(scope.fresh("e"))

    def fill(start: int, count: int) -> Stmt:
        column, lane = Variable(scope.fresh("e")), Variable(scope.fresh("e"))
        store = Store(buffer, (index(0), channel, row, column + start, lane), value)
        return loops(((column.name, count),), loops(((lane.name, lanes),), store, LoopKind.VECTOR))

    ends = [fill(start, count) for start, count in ((0, left), (columns - right, right)) if count]
    outside = (row < index(above)) | (index(rows - below - 1) < row)
    body = If(outside, fill(0, columns), block(*ends))
    return loops(((channel.name, channels), (row.name, rows)), body)


def _fill(buffer: Buffer, spans: Sequence[tuple[int, int]], value: Constant, scope: Scope) -> Stmt:
    nest: list[tuple[str, int]] = []
    where: list[Expr] = []
    for start, end in spans:
        if end - start == 1:
            where.append(index(start))
            continue
        name = scope.fresh("e")
        nest.append((name, end - start))
        where.append(Variable(name) + start if start else Variable(name))
    body: Stmt = Store(buffer, tuple(where), value)
    if nest and spans[-1][1] - spans[-1][0] > 1:
        body = loops((nest.pop(),), body, LoopKind.VECTOR)
    return loops(tuple(nest), body)
