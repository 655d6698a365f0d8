"""Borders of a constant around results that are written inside them."""

from collections.abc import Sequence

from ..loops.expressions import Buffer, Constant, Expr, Variable
from ..loops.ir import If, Stmt, Store, block, loops
from .operand import Scope, index

__all__ = ["border"]


def border(buffer: Buffer, pads: Sequence[tuple[int, int]], value: Constant, scope: Scope) -> Stmt:
    """Stores of all elements that are fewer than ``pads`` from an end of a dimension, each once.

    In the order of memory: whole rows at both ends of a dimension, and what is outside of others.
    """
    last = max((axis for axis, pad in enumerate(pads) if sum(pad)), default=-1)

    def along(axis: int, start: int, count: int, where: tuple[Expr, ...], inner: bool) -> Stmt:
        """Elements from ``start`` on; ``inner``: only those outside of further dimensions."""
        if count == 1:
            return after(axis, index(start), where, inner)
        name = scope.fresh("e")
        place = Variable(name) + start if start else Variable(name)
        return loops(((name, count),), after(axis, place, where, inner))

    def after(axis: int, place: Expr, where: tuple[Expr, ...], inner: bool) -> Stmt:
        """In the dimensions after ``axis``."""
        where = (*where, place)
        if inner and axis < last:
            return outside(axis + 1, where)
        if len(where) == len(buffer.shape):
            return Store(buffer, where, value)
        return along(axis + 1, 0, buffer.shape[axis + 1], where, False)

    def outside(axis: int, where: tuple[Expr, ...]) -> Stmt:
        size, (first, rest) = buffer.shape[axis], pads[axis]
        ends = [(start, count) for start, count in ((0, first), (size - rest, rest)) if count]
        if axis == last:
            return block(*(along(axis, start, count, where, False) for start, count in ends))
        if not ends:
            return along(axis, 0, size, where, True)
        row = Variable(scope.fresh("e"))
        tests = [row < index(first)] if first else []
        tests += [index(size - rest - 1) < row] if rest else []
        beyond = tests[0] if len(tests) == 1 else tests[0] | tests[1]
        body = If(beyond, after(axis, row, where, False), after(axis, row, where, True))
        return loops(((row.name, size),), body)

    return block() if last < 0 or 0 in buffer.shape else outside(0, ())
