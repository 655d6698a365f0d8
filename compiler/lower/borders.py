"""Borders of a constant around results, in vectors and for threads."""

from collections.abc import Sequence
from dataclasses import replace

from ..define.borders import border as plain_border
from ..define.operand import index
from ..loops.expressions import Buffer, Constant, Variable
from ..loops.ir import For, If, LoopKind, Stmt, Store, block, loops
from ..loops.rewrite import map_statement
from ..loops.traverse import variables
from .scope import Scope

__all__ = ["border"]

IMAGE_RANK = 5


def border(buffer: Buffer, pads: Sequence[tuple[int, int]], value: Constant, scope: Scope) -> Stmt:
    """The border's stores; those of images of several channels, float[N, C / B, H, W, B], row by
    row, for threads to share them.
    """
    if scope.machine.threads > 1 and _is_image(buffer, pads):
        return _rows(buffer, pads, value, scope)

    def vector(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, For) or not isinstance(stmt.body, Store):
            return stmt
        along = stmt.variable in variables(stmt.body.indices[-1])
        return replace(stmt, kind=LoopKind.VECTOR) if along else stmt

    return map_statement(plain_border(buffer, pads, value, scope), None, vector)


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
