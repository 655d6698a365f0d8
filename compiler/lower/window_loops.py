"""Loops over the elements of a window, and over windows that are neighbours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..define.operand import Operand, Result, index, over, zero
from ..graph.operators.windows import WindowArgMax, WindowReduce
from ..loops.expressions import Binary, BinaryFunction, Buffer, Constant, Expr, Load, Variable
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, LoopKind, Stmt, Store, Update, block, loops
from .scope import Scope

__all__ = ["Position", "Reduction", "by_lanes", "window_count"]


class Position:
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
            last = window_count(size, kernel, stride, dilation, pads) - 1
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


def window_count(size: int, kernel: int, stride: int, dilation: int, pads: tuple[int, int]) -> int:
    """Windows along one dimension."""
    return (size + sum(pads) - (kernel - 1) * dilation - 1) // stride + 1


@dataclass(frozen=True, slots=True)
class Reduction:
    """Of windows of ``x``: ``function`` combines their elements, beginning with ``first``."""

    operator: WindowReduce
    x: Operand
    result: Result
    scope: Scope
    function: BinaryFunction
    first: Constant

    @property
    def lanes(self) -> int:
        """Elements in a vector."""
        return max(64 // max(self.first.dtype.bytes, 1), 1)

    def value(self, position: Position) -> Expr:
        """An element of a window; ``first`` where it lies outside of the tensor."""
        if position.inside is None:
            return self.x[position.where]
        return self.x.where(position.inside, position.where, self.first)

    def combined(
        self,
        taps: Sequence[tuple[str, Expr | int]],
        value: Expr,
        store: Callable[[Expr], Stmt],
        lane: str,
        lanes: int,
        kind: LoopKind = LoopKind.SERIAL,
    ) -> Stmt:
        """``value`` of all taps combined in a register for each lane, then stored.

        kind: of the loops over the taps.
        """
        total = Buffer(self.scope.fresh("acc"), (lanes,), self.first.dtype, Memory.REGISTER)
        at = (Variable(lane),) if lanes > 1 else (zero(),)

        def wide(body: Stmt) -> Stmt:
            return loops(((lane, lanes),), body, LoopKind.VECTOR) if lanes > 1 else body

        return Allocate(
            total,
            block(
                wide(Store(total, at, self.first)),
                loops(tuple(taps), wide(Update(total, at, self.function, value)), kind),
                wide(store(Load(total, at))),
            ),
        )


def by_lanes(
    shape: tuple[int, ...],
    width: int,
    piece: Callable[[tuple[Expr, ...], str, int], Stmt],
    scope: Scope,
) -> Stmt:
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
