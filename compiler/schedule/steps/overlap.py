"""Filling shared memory for one iteration while the one before it computes."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen, replace

from ...errors import ScheduleError
from ...loops.accesses import accesses
from ...loops.bounds import Bounds
from ...loops.expressions import Buffer, Constant, Expr, Scope, Variable, as_index
from ...loops.intrinsic import BARRIER, WAIT, WAIT_BEFORE, Intrinsic
from ...loops.ir import Allocate, Block, Function, If, Invoke, LoopKind, Stmt, block
from ...loops.rewrite import substitute
from .redirect import redirect
from .site import find_loop, loop_names, rename_loops

__all__ = ["Overlap"]

DEEP = 4
FILLED = 3


@frozen
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
    filled, and that all are done with the half that is filled next.  The loop is serial, and
    allocates the buffers directly; statements that fill them come first, and read nothing that it
    writes.

    behind: the use comes before the fill, and the wait after both, so that a use which is
    asynchronous goes on while threads fill:

        ->   fill t[0] of 0;  invoke wait();  invoke barrier()
               for k in N:
                 use t[k % 2]
                 if k + 1 < N: fill t[(k + 1) % 2] of k + 1
                 invoke wait();  invoke barrier()

    buffers: 3 where fills have two iterations to arrive, and the use comes after:

        ->   fill t[0] of 0;  invoke wait_before();  fill t[1] of 1
               for k in N:
                 invoke wait_before();  invoke barrier()
                 if k + 2 < N: fill t[(k + 2) % 3] of k + 2
                 use t[k % 3]

    buffers: 4 where the use of an iteration goes on in the next one too, and is behind:

        ->   fill t[0] of 0;  invoke wait_before();  fill t[1] of 1
               for k in N:
                 invoke wait_before();  invoke barrier()
                 use t[k % 4]
                 if k + 2 < N: fill t[(k + 2) % 4] of k + 2
               invoke wait();  invoke barrier()
    """

    loop: str
    behind: bool = False
    buffers: int = 2

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
        count = int(loop.extent.value)
        known, distance = (2, DEEP if self.behind else FILLED), 1 if self.buffers == 2 else 2
        if self.buffers not in known or count < distance:
            raise ScheduleError(f"{what}: {self.buffers} buffers for {count} iterations")
        if not buffers or any(each.scope is not Scope.SHARED for each in buffers):
            raise ScheduleError(f"{what}: it does not allocate shared memory alone")
        statements = body.statements if isinstance(body, Block) else (body,)
        number = self._fills(statements, {each.name for each in buffers}, intrinsics, what)
        fill, use = block(*statements[:number]), block(*statements[number:])
        parts = self.buffers
        index, last = Variable(self.loop), as_index(count)
        taken = loop_names(function.body)

        def start(iteration: int, ending: str) -> Stmt:
            stmt = rename_loops(substitute(fill, {self.loop: as_index(iteration)}), taken, ending)
            return _part(stmt, buffers, parts, as_index(iteration))

        ahead = substitute(fill, {self.loop: index + distance})
        filled = If(
            index + distance < last, _part(ahead, buffers, parts, (index + distance) % parts)
        )
        used = _part(use, buffers, parts, index % parts)
        barrier = Invoke(BARRIER, ())
        meeting, before = (Invoke(WAIT, ()), barrier), Invoke(WAIT_BEFORE, ())
        begin = block(start(0, ".first"))
        if distance == 2:
            begin = block(begin, before, start(1, ".second"))
        if distance == 2 and self.behind:
            body = block(before, barrier, used, filled)
            whole = block(begin, replace(loop, body=body), *meeting)
        elif distance == 2:
            whole = block(begin, replace(loop, body=block(before, barrier, filled, used)))
        elif self.behind:
            body = block(used, filled, *meeting)
            whole = block(begin, *meeting, replace(loop, body=body))
        else:
            whole = block(begin, replace(loop, body=block(*meeting, filled, used)))
        for each in reversed(buffers):
            whole = Allocate(_parts(each, parts), whole)
        return site.simplified(whole)

    def _fills(
        self,
        statements: tuple[Stmt, ...],
        names: set[str],
        intrinsics: Mapping[str, Intrinsic],
        what: str,
    ) -> int:
        """Number of statements that fill the buffers."""
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


def _parts(buffer: Buffer, count: int) -> Buffer:
    return replace(buffer, shape=(count, *buffer.shape))


def _part(stmt: Stmt, buffers: list[Buffer], count: int, number: Expr) -> Stmt:
    for each in buffers:
        stmt = redirect(
            stmt,
            each.name,
            _parts(each, count),
            lambda indices: (number, *indices),
            lambda shape: (1, *shape),
        )
    return stmt
