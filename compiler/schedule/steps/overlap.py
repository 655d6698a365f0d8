"""Filling shared memory for one iteration while the one before it computes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...errors import ScheduleError
from ...loops.accesses import accesses
from ...loops.bounds import Bounds
from ...loops.expressions import Buffer, Constant, Expr, Scope, Variable, as_index
from ...loops.intrinsic import BARRIER, WAIT, Intrinsic
from ...loops.ir import Allocate, Block, Function, If, Invoke, LoopKind, Stmt, block
from ...loops.rewrite import substitute
from .redirect import redirect
from .site import find_loop, loop_names, rename_loops

__all__ = ["Overlap"]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Fill the shared buffers of a loop an iteration ahead, into one of two halves of each.

        for k in N: alloc t[4] shared: fill t of k; use t
        ->   alloc t[2, 4] shared:
               fill t[0] of 0
               for k in N:
                 invoke wait();  invoke barrier()
                 if k + 1 < N: fill t[(k + 1) % 2] of k + 1
                 use t[k % 2]

    The wait ends asynchronous copies of the fill; the barrier shows all threads what all have
    filled, and that all have used the half which is filled next.  The loop is serial, and allocates
    the buffers directly; statements that fill them come first, and read nothing that it writes.

    behind: the use comes before the fill, and the wait after both, so that a use which is
    asynchronous goes on while threads fill:

        ->   fill t[0] of 0;  invoke wait();  invoke barrier()
               for k in N:
                 use t[k % 2]
                 if k + 1 < N: fill t[(k + 1) % 2] of k + 1
                 invoke wait();  invoke barrier()
    """

    loop: str
    behind: bool = False

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"overlap in {self.loop}"
        site, loop = find_loop(function, self.loop)
        if loop.kind is not LoopKind.SERIAL or not isinstance(loop.extent, Constant):
            raise ScheduleError(f"{what}: the loop is not serial, or its extent not constant")
        buffers: list[Buffer] = []
        body = loop.body
        while isinstance(body, Allocate):
            buffers.append(body.buffer)
            body = body.body
        if not buffers or any(each.scope is not Scope.SHARED for each in buffers):
            raise ScheduleError(f"{what}: it does not allocate shared memory alone")
        statements = body.statements if isinstance(body, Block) else (body,)
        count = self._fills(statements, {each.name for each in buffers}, intrinsics, what)
        fill, use = block(*statements[:count]), block(*statements[count:])
        index, last = Variable(self.loop), as_index(int(loop.extent.value))
        taken = loop_names(function.body)
        first = rename_loops(substitute(fill, {self.loop: as_index(0)}), taken, ".first")
        ahead = substitute(fill, {self.loop: index + 1})
        begin = _half(first, buffers, as_index(0))
        filled = If(index + 1 < last, _half(ahead, buffers, (index + 1) % 2))
        used = _half(use, buffers, index % 2)
        meeting = Invoke(WAIT, ()), Invoke(BARRIER, ())
        whole: Stmt = (
            block(begin, *meeting, replace(loop, body=block(used, filled, *meeting)))
            if self.behind
            else block(begin, replace(loop, body=block(*meeting, filled, used)))
        )
        for each in reversed(buffers):
            whole = Allocate(_halves(each), whole)
        return site.simplified(whole)

    def _fills(
        self,
        statements: tuple[Stmt, ...],
        names: set[str],
        intrinsics: Mapping[str, Intrinsic],
        what: str,
    ) -> int:
        """How many statements fill the buffers."""
        found = [accesses(stmt, Bounds(), intrinsics) for stmt in statements]
        outside = [[each for each in part if each.private is None] for part in found]
        written = [{each.buffer.name for each in part if each.writes} for part in outside]
        count = 0
        while count < len(written) and written[count] & names:
            count += 1
        if not 0 < count < len(written):
            raise ScheduleError(f"{what}: it does not begin by filling them, or does no more")
        if set().union(*written[:count]) - names or set().union(*written[count:]) & names:
            raise ScheduleError(f"{what}: what fills them writes more, or they are written later")
        read = {each.buffer.name for part in outside[:count] for each in part if each.reads}
        stale = (read - names) & set().union(*written[count:])
        if stale:
            raise ScheduleError(f"{what}: a fill reads {min(stale)}, which the loop writes")
        return count


def _halves(buffer: Buffer) -> Buffer:
    return replace(buffer, shape=(2, *buffer.shape))


def _half(stmt: Stmt, buffers: list[Buffer], number: Expr) -> Stmt:
    for each in buffers:
        stmt = redirect(
            stmt,
            each.name,
            _halves(each),
            lambda indices: (number, *indices),
            lambda shape: (1, *shape),
        )
    return stmt
