"""Reductions as definitions write them: a scalar that is set, updated in loops, and used.

for i in N: alloc c: c[] = a; for k in K: c[] add= p; S(c[])
"""

from collections.abc import Sequence
from typing import NoReturn

from dovetail.isa.frozen import frozen

from ...errors import ScheduleError
from ...loops.expressions import Binary, BinaryFunction, Buffer, Constant, Expr
from ...loops.ir import Block, For, Function, LoopKind, Stmt, Store, Update, block
from ...loops.traverse import loads, written
from .site import Site, find_allocation

__all__ = ["Reduction", "combined", "read_reduction"]


@frozen
class Reduction:
    """A reduction to ``register``, of shape (), in a function.

    site: of the allocation.  kept: the loops directly around it, outermost first.  start: the
    store before the sum.  summed: the loops around ``update``, outermost first.  finish: what is
    done with the result.
    """

    site: Site
    kept: tuple[For, ...]
    register: Buffer
    start: Store
    summed: tuple[For, ...]
    update: Update
    finish: Stmt

    @property
    def sizes(self) -> dict[str, int]:
        """Iterations of each of the loops."""
        return {loop.variable: _count(loop) for loop in (*self.kept, *self.summed)}


def read_reduction(function: Function, buffer: str, what: str) -> Reduction:
    """The reduction to the scalar ``buffer``.

    Raises ScheduleError, which begins with ``what``, for statements of another form.
    """

    def refuse(found: str) -> NoReturn:
        raise ScheduleError(
            f"{what}: {found}; required: {buffer}[] set, updated in serial loops of constant "
            "extents, and used"
        )

    site, allocation = find_allocation(function, buffer)
    body, register = allocation.body, allocation.buffer
    if register.shape != ():
        refuse(f"{buffer} has the shape {list(register.shape)}")
    if not isinstance(body, Block) or len(body.statements) < 2:
        refuse("its statement is one")
    start, total, *rest = body.statements
    if not isinstance(start, Store) or start.buffer.name != buffer:
        refuse("it is not set first")
    summed = _chain(total)
    update = summed[-1].body if summed else total
    if not isinstance(update, Update) or update.buffer.name != buffer:
        refuse("no update of it follows")
    finish = block(*rest)
    before = (*loads(start), *loads(update))
    if any(load.buffer.name == buffer for load in before) or buffer in written(finish):
        refuse("its value is used while it is summed, or changed after")
    kept: list[For] = []
    for outer, _ in reversed(site.above):
        if not isinstance(outer, For) or outer.kind is not LoopKind.SERIAL:
            break
        if not isinstance(outer.extent, Constant):
            break
        kept.insert(0, outer)
    if not all(isinstance(loop.extent, Constant) for loop in summed):
        refuse("a sum's extent is not constant")
    return Reduction(site, tuple(kept), register, start, tuple(summed), update, finish)


def _chain(stmt: Stmt) -> Sequence[For]:
    """The serial loops from ``stmt`` on, each directly in the one before it."""
    found: list[For] = []
    while isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL:
        found.append(stmt)
        stmt = stmt.body
    return found


def _count(loop: For) -> int:
    assert isinstance(loop.extent, Constant)
    return int(loop.extent.value)


def combined(function: BinaryFunction, values: Sequence[Expr]) -> Expr:
    """All values as one, by a tree."""
    found = list(values)
    while len(found) > 1:
        pairs = [Binary(function, a, b) for a, b in zip(found[::2], found[1::2], strict=False)]
        found = pairs + ([found[-1]] if len(found) % 2 else [])
    return found[0]
