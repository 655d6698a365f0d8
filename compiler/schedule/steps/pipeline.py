"""Loading for one iteration while the one before it computes."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.accesses import Access, accesses
from ...loops.bounds import Bounds
from ...loops.expressions import Constant, Expr, Scope, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, Block, For, Function, If, LoopKind, Stmt, block
from ...loops.rewrite import substitute
from ...loops.simplify import Simplifier
from .redirect import redirect
from .site import find_allocation, find_loop, loop_names, rename_loops

__all__ = ["Pipeline"]


@frozen
class Pipeline:
    """Load a buffer an iteration ahead, into one of two halves.

        for i in N: alloc t[4]: load t of i; use t
        ->   alloc t[2, 4]:
               load t[0] of 0
               for i in N:
                 if i + 1 < N: load t[(i + 1) % 2] of i + 1
                 use t[i % 2]

    The buffer is allocated in the serial loop, whose extent is constant; the statements that write
    it come first, and read nothing that the loop writes.
    """

    loop: str
    buffer: str

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"pipeline of {self.buffer} in {self.loop}"
        site, loop = find_loop(function, self.loop)
        _, allocation = find_allocation(function, self.buffer)
        extent = Simplifier(site.bounds).linear(loop.extent).value
        if loop.kind is not LoopKind.SERIAL or not extent:
            raise ScheduleError(f"{what}: the loop is not serial, or its extent not constant")
        buffer = allocation.buffer
        if buffer.scope is Scope.REGISTER:
            raise ScheduleError(f"{what}: it is in registers, which no iteration can choose from")
        others, body = self._peeled(loop, allocation, what)
        statements = body.statements if isinstance(body, Block) else (body,)
        found = [accesses(stmt, Bounds(), intrinsics) for stmt in statements]
        count = 0
        while count < len(found) and _writes(found[count], self.buffer):
            count += 1
        self._check(found, count, what)
        halves = replace(buffer, shape=(2, *buffer.shape))
        load = block(*statements[:count])
        use = block(*statements[count:])
        index = Variable(self.loop)
        taken = loop_names(function.body)
        zero = Constant(0, DType.INT64)
        first = rename_loops(substitute(load, {self.loop: zero}), taken, ".first")
        ahead = substitute(load, {self.loop: index + 1})

        def half(stmt: Stmt, number: Expr) -> Stmt:
            return redirect(
                stmt,
                buffer.name,
                halves,
                lambda indices: (number, *indices),
                lambda shape: (1, *shape),
            )

        inner = half(use, index % 2)
        for other in reversed(others):
            inner = replace(other, body=inner)
        steady = block(If(index + 1 < extent, half(ahead, (index + 1) % 2)), inner)
        return site.simplified(
            Allocate(halves, block(half(first, zero), replace(loop, body=steady)))
        )

    def _peeled(self, loop: For, allocation: Allocate, what: str) -> tuple[list[Allocate], Stmt]:
        """The other allocations directly in the loop, and the body inside them."""
        others: list[Allocate] = []
        stmt, seen = loop.body, False
        while isinstance(stmt, Allocate):
            if stmt is allocation:
                seen = True
            else:
                others.append(stmt)
            stmt = stmt.body
        if not seen:
            raise ScheduleError(f"{what}: it is not allocated directly in the loop")
        return others, stmt

    def _check(self, found: list[list[Access]], count: int, what: str) -> None:
        if not 0 < count < len(found):
            raise ScheduleError(f"{what}: the loop does not begin by writing it, or does no more")
        loads = [access for part in found[:count] for access in part]
        uses = [access for part in found[count:] for access in part]
        if any(a.writes and a.buffer.name != self.buffer and a.private is None for a in loads):
            raise ScheduleError(f"{what}: what writes it writes more; separate them by fission")
        if any(a.writes and a.buffer.name == self.buffer for a in uses):
            raise ScheduleError(f"{what}: it is written again after its load")
        written = {a.buffer.name for a in uses if a.writes and a.private is None}
        stale = written & {a.buffer.name for a in loads if a.reads}
        if stale:
            raise ScheduleError(f"{what}: its load reads {min(stale)}, which the loop writes")


def _writes(found: list[Access], name: str) -> bool:
    return any(access.writes and access.buffer.name == name for access in found)
