"""Loops of the selection of boxes."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..dtypes import DType
from ..graph.operators.selection import SuppressOverlaps
from ..loops.expressions import Binary, BinaryFunction, Buffer, Constant, Expr, Select, Variable
from ..loops.expressions import Scope as MemoryScope
from ..loops.ir import Allocate, If, Let, Stmt, Store, block, loops
from .operand import Anchor, Operand, Result, Scope, index, zero

__all__ = ["SELECTION"]


def suppress(
    operator: SuppressOverlaps, operands: Sequence[Operand], results: Sequence[Result], scope: Scope
) -> Stmt:
    """Boxes in the order of their scores, each against those chosen before."""
    boxes, scores, order, overlap, least = operands
    rows, total = results[0].buffer, results[1].buffer
    assert rows is not None
    assert total is not None
    first = Buffer(scope.fresh("first"), (), DType.INT64, MemoryScope.LOCAL)
    apart = Buffer(scope.fresh("apart"), (), DType.BOOL, MemoryScope.LOCAL)
    b, c, k, other, clear = (Variable(scope.fresh("i")) for _ in range(5))
    box, chosen = Variable(scope.fresh("box")), Variable(scope.fresh("chosen"))
    column = Variable(scope.fresh("i"))
    mine = tuple(boxes[(b, box, index(n))] for n in range(4))
    theirs = tuple(boxes[(b, chosen, index(n))] for n in range(4))
    compare = Let(
        chosen,
        rows[(first[()] + other, index(2))],
        If(overlap[()] < _ratio(mine, theirs), Store(apart, (), _bool(False))),
    )
    append = block(
        Store(rows, (total[()], zero()), b),
        Store(rows, (total[()], index(1)), c),
        Store(rows, (total[()], index(2)), box),
        Store(total, (), total[()] + 1),
    )
    consider = block(
        Store(apart, (), _bool(True)),
        loops(((other.name, total[()] - first[()]),), compare),
        If(apart[()], append),
    )
    wanted = (total[()] - first[()] < operator.limit) & (least[()] < scores[(b, c, k)])
    each = If(wanted, Let(box, order[(b, c, k)], consider))
    batches, classes, count = scores.type.shape
    classwise = block(Store(first, (), total[()]), loops(((k.name, count),), each))
    cleared = Store(rows, (clear, column), zero())
    body = block(
        loops(((clear.name, rows.shape[0]), (column.name, 3)), cleared),
        Store(total, (), zero()),
        loops(((b.name, batches), (c.name, classes)), classwise),
    )
    return Allocate(first, Allocate(apart, body))


def _ratio(a: Sequence[Expr], b: Sequence[Expr]) -> Expr:
    """Intersection by union; 0 for boxes without area."""
    nought = Constant(0.0, DType.FLOAT32)
    sides = [_most(_least(a[n + 2], b[n + 2]) - _most(a[n], b[n]), nought) for n in range(2)]
    common = sides[0] * sides[1]
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common
    return Select(nought < union, Binary(BinaryFunction.DIV, common, union), nought)


def _least(a: Expr, b: Expr) -> Expr:
    return Binary(BinaryFunction.MIN, a, b)


def _most(a: Expr, b: Expr) -> Expr:
    return Binary(BinaryFunction.MAX, a, b)


def _bool(value: bool) -> Expr:
    return Constant(value, DType.BOOL)


SELECTION: Mapping[type[Any], Anchor] = {SuppressOverlaps: suppress}
