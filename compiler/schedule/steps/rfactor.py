"""Reducing in parts."""

import math
from collections.abc import Mapping

from dovetail.isa.frozen import frozen, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.accesses import Access, accesses
from ...loops.arithmetic import integer_limits
from ...loops.bounds import Bounds
from ...loops.expressions import BinaryFunction, Buffer, Constant, Expr, Load, Scope, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, For, Function, If, Let, Stmt, Store, Update, block, loops
from ...loops.regions import Box, box_of, covers
from ...loops.rewrite import map_statement
from ...loops.simplify import Simplifier
from ...loops.traverse import variables
from .redirect import box_loops, guarded, offsets
from .site import buffer_names, find_loop, fresh, loop_names

__all__ = ["Rfactor", "identity"]

Intrinsics = Mapping[str, Intrinsic]


@frozen
class Rfactor:
    """Reduce in the iterations of a loop apart from each other, then over them.

        for o: for l in 8: s[] add= x[8 * o + l]
        ->   alloc p[8]: for l': p[l'] = 0;  for o: for l: p[l] add= x[8 * o + l];
             for l'': s[] add= p[l'']

    ``loop`` is l, ``root`` is o, the loop around it (or l itself) outside of which the partial
    results live.  One update is all there is in ``root``; its indices do not depend on l.  The
    order of float additions changes.  The new buffer is named ``name``, if given.
    """

    loop: str
    root: str
    name: str = ""

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"rfactor of {self.loop} in {self.root}"
        site, root = find_loop(function, self.root)
        update, lanes = self._update(root, what)
        bounds = site.bounds
        found = accesses(root, bounds, intrinsics, of=(update.buffer.name,))
        if len(found) != 1:
            raise ScheduleError(f"{what}: its result is read there")
        target = update.buffer
        box = box_of(found, target.shape, bounds)
        if not covers(_unguarded(found[0], bounds), box, target.shape, bounds):
            raise ScheduleError(
                f"{what}: it is not shown that all of the box {list(box.shape)} is updated"
            )
        if any(self.loop in variables(index) for index in update.indices):
            raise ScheduleError(
                f"{what}: the update is of another element for each iteration of it"
            )
        taken = buffer_names(function)
        name = self.name or fresh(f"{target.name}.partial", taken)
        if name in taken:
            raise ScheduleError(f"there is a buffer {name!r} already")
        partial = Buffer(name, (lanes, *box.shape), target.dtype, Scope.LOCAL)
        neutral = Constant(identity(update.function, target.dtype), target.dtype)
        lane = Variable(self.loop)
        start = offsets(box)

        def change(stmt: Stmt) -> Stmt:
            if stmt is not update:
                return stmt
            return replace(update, buffer=partial, indices=(lane, *start(update.indices)))

        first, last = self._nests(function, partial, box, lanes)
        (around, at), (around_last, at_last) = first, last
        begin = loops(around, Store(partial, at, neutral))
        place = tuple(
            form.to_expr() + each for form, each in zip(box.start, at_last[1:], strict=True)
        )
        end = Update(target, place, update.function, Load(partial, at_last))
        finish = loops(around_last, guarded(end, box, target, place, bounds))
        body = map_statement(root, None, change)
        return site.simplified(Allocate(partial, block(begin, body, finish)))

    def _update(self, root: For, what: str) -> tuple[Update, int]:
        """The update that is all there is, and the extent of the loop."""
        stmt: Stmt = root
        lanes: int | None = None
        while not isinstance(stmt, Update):
            match stmt:
                case For(variable=name, extent=extent, body=body):
                    if name == self.loop:
                        lanes = int(extent.value) if isinstance(extent, Constant) else None
                        if lanes is None:
                            raise ScheduleError(f"{what}: its extent is not constant")
                    stmt = body
                case If(then=then, otherwise=None):
                    stmt = then
                case Let(body=body):
                    stmt = body
                case _:
                    raise ScheduleError(f"{what}: there is more than one update in {self.root}")
        if lanes is None:
            raise ScheduleError(f"{what}: the first is not in the second")
        return stmt, lanes

    def _nests(
        self, function: Function, partial: Buffer, box: Box, lanes: int
    ) -> list[tuple[tuple[tuple[str, int], ...], tuple[Expr, ...]]]:
        taken = loop_names(function.body)
        whole = Box((box.start[0] if box.start else _ZERO, *box.start), (lanes, *box.shape))
        return [
            box_loops(
                whole,
                [fresh(f"{partial.name}.{part}{axis}", taken) for axis in range(len(whole.shape))],
            )
            for part in ("first.", "last.")
        ]


_ZERO = Simplifier(Bounds()).linear(Constant(0, DType.INT64))


def _unguarded(access: Access, bounds: Bounds) -> Access:
    """The access without guards: elements that are not updated stay, as an identity keeps them."""
    return replace(access, bounds=Bounds(access.bounds.ranges, bounds.facts), conditional=False)


def identity(function: BinaryFunction, dtype: DType) -> int | float | bool:
    """The value that leaves every other as it is."""
    low, high = (-math.inf, math.inf) if dtype.is_float else integer_limits(dtype)
    match function:
        case BinaryFunction.ADD:
            return -0.0 if dtype.is_float else 0
        case BinaryFunction.MUL:
            return 1
        case BinaryFunction.MIN:
            return high
        case BinaryFunction.MAX:
            return low
        case BinaryFunction.AND:
            return True if dtype is DType.BOOL else -1 if dtype.is_signed else high
        case _:
            return 0
