"""A long sum in parts that do not wait for each other."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen, replace

from ...errors import ScheduleError
from ...loops.expressions import BinaryFunction, Buffer, Constant, Load, Scope, Variable, as_index
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, Block, For, Function, Stmt, Store, Update, block, loops
from ...loops.rewrite import substitute
from ...loops.traverse import variables
from .redirect import redirect
from .site import buffer_names, find_loop, fresh, loop_names, rename_loops

__all__ = ["SplitSum"]


@frozen
class SplitSum:
    """Sum parts of a loop in a nest of their own, then sum these.

        for p: for q: alloc s: s = 0; for k in 64: s add= f(k); y[p, q] = s
        ->   alloc t[4, P, Q]:
               for k.split in 4: for p: for q: alloc s: s = 0; for k in 16: s add= f(16 k.split + k)
                                                        t[k.split, p, q] = s
               for p': for q': alloc s: s = 0; for k.parts in 4: s add= t[k.parts, p', q']
                                        y[p', q'] = s

    ``loop`` is k; it is all that is summed, of a constant extent that ``parts`` divides, and the
    nest around it is the whole function.  The order of float additions changes.
    """

    loop: str
    parts: int
    name: str = ""

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"split of the sum over {self.loop} in {self.parts} parts"
        _, loop = find_loop(function, self.loop)
        around: list[tuple[str, int]] = []
        stmt: Stmt = function.body
        while isinstance(stmt, For) and isinstance(stmt.extent, Constant):
            around.append((stmt.variable, int(stmt.extent.value)))
            stmt = stmt.body
        inner = stmt.body if isinstance(stmt, Allocate) else None
        if not around or not isinstance(stmt, Allocate) or not isinstance(inner, Block):
            raise ScheduleError(f"{what}: required a function that is a nest around a sum")
        start, whole, *rest = inner.statements
        update = loop.body
        if whole is not loop or not isinstance(update, Update) or not isinstance(start, Store):
            raise ScheduleError(f"{what}: required a start, the sum, and what is done with it")
        own = update.buffer == stmt.buffer == start.buffer and not stmt.buffer.shape
        if not own or update.function is not BinaryFunction.ADD or not rest:
            raise ScheduleError(f"{what}: it does not add to the one number that it is for")
        if start.value != Constant(0, start.value.dtype) or variables(loop.extent):
            raise ScheduleError(f"{what}: required a sum from 0, of a constant extent")
        extent = int(loop.extent.value) if isinstance(loop.extent, Constant) else 0
        if self.parts < 2 or not extent or extent % self.parts:
            raise ScheduleError(f"{what}: required a divisor of its {extent} iterations")
        taken = loop_names(function.body)
        split, again = (fresh(f"{self.loop}.{end}", taken) for end in ("split", "parts"))
        name = self.name or fresh(f"{stmt.buffer.name}.parts", buffer_names(function))
        shape = (self.parts, *(size for _, size in around))
        parts = Buffer(name, shape, stmt.buffer.dtype, Scope.LOCAL)
        size = extent // self.parts
        place = Variable(split) * size + Variable(self.loop)
        summed = replace(loop, extent=as_index(size), body=substitute(update, {self.loop: place}))
        indices = tuple(Variable(each) for each, _ in around)
        keep = Store(parts, (Variable(split), *indices), Load(stmt.buffer, ()))
        first = Allocate(stmt.buffer, block(start, summed, keep))
        total = replace(stmt.buffer, name=fresh(stmt.buffer.name, buffer_names(function)))
        adding = Update(total, (), BinaryFunction.ADD, Load(parts, (Variable(again), *indices)))
        after = block(start, loops(((again, self.parts),), adding), *rest)
        second = Allocate(total, redirect(after, stmt.buffer.name, total, lambda given: given))
        last = rename_loops(loops(tuple(around), second), (*taken, split), ".whole")
        body = block(loops(((split, self.parts), *around), first), last)
        return replace(function, body=Allocate(parts, body))
