"""Borders of a constant around results that are written inside them."""

from collections.abc import Sequence

from ..loops.expressions import Buffer, Constant, Expr, Variable
from ..loops.ir import Stmt, Store, block, loops
from .operand import Scope, index

__all__ = ["border"]


def border(buffer: Buffer, pads: Sequence[tuple[int, int]], value: Constant, scope: Scope) -> Stmt:
    """Stores of all elements that are fewer than ``pads`` from an end of a dimension.

    Each once: along a dimension those at its ends, inside of the dimensions before it.
    """
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
    return loops(tuple(nest), Store(buffer, tuple(where), value))
