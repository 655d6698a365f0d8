"""Computing, in each iteration of a loop, what it reads."""

from collections.abc import Mapping, Sequence

from dovetail.isa.frozen import frozen, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.accesses import accesses
from ...loops.bounds import Bounds
from ...loops.expressions import Buffer, Constant, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, Block, For, Function, If, Stmt, block
from ...loops.regions import Box, box_of
from ...loops.rewrite import substitute
from ...loops.simplify import Simplifier
from ...loops.traverse import bodies
from .redirect import inside, offsets, redirect
from .site import Site, find, find_allocation, find_loop, loop_names

__all__ = ["ComputeAt"]

Intrinsics = Mapping[str, Intrinsic]


@frozen
class ComputeAt:
    """Compute what an iteration of a loop reads of a buffer at the start of the iteration.

        alloc t[N]: for i in N: t[i] = f(i);  for j: for k in 4: y[..] = t[4 * j + k]
        ->   for j: alloc t[4]: for i in 4: t[i] = f(4 * j + i);  for k in 4: y[..] = t[k]

    All reads of the buffer are in the loop.  The statements that write it come before, write
    nothing else, and use one loop for each dimension as its index, or a number where iterations
    read all of the dimension; what they read is not written later.  Elements that two iterations
    read are computed twice.
    """

    buffer: str
    loop: str

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"compute_at of {self.buffer} in {self.loop}"
        site, allocation = find_allocation(function, self.buffer)
        loop_site, _ = find_loop(function, self.loop)
        buffer = allocation.buffer
        inner = site.down(buffer.name)
        statements = _statements(inner.stmt)
        producers = self._divided(statements, intrinsics, what)
        place = loop_site.body.down(buffer.name)
        found = accesses(place.stmt, place.bounds, intrinsics, of=(buffer.name,))
        box = box_of(found, buffer.shape, place.bounds)
        new = replace(buffer, shape=box.shape)
        moved = [
            redirect(
                self._shifted(stmt, buffer, box, place.bounds, intrinsics, what),
                buffer.name,
                new,
                offsets(box),
            )
            for stmt in producers
        ]
        body = redirect(place.stmt, buffer.name, new, offsets(box))
        changed = place.simplified(Allocate(new, block(*moved, body)))
        # The producers and the old allocation go; the new one, of the same name, is further in.
        target = Site(changed, _at(changed.body, site.above), site.above).down(buffer.name)
        rest = [
            stmt
            for stmt, before in zip(_statements(target.stmt), statements, strict=True)
            if not any(before is producer for producer in producers)
        ]
        cleaned = target.replaced(block(*rest))
        outer = _at(cleaned.body, site.above)
        assert isinstance(outer, Allocate)
        return Site(cleaned, outer, site.above).replaced(outer.body)

    def _divided(self, statements: Sequence[Stmt], intrinsics: Intrinsics, what: str) -> list[Stmt]:
        """The statements that write the buffer; the one with the loop follows them."""
        producers: list[Stmt] = []
        used = False
        read: set[str] = set()
        for stmt in statements:
            found = accesses(stmt, Bounds(), intrinsics)
            has_loop = self.loop in loop_names(stmt)
            if any(a.writes and a.buffer.name == self.buffer for a in found):
                if used or has_loop:
                    raise ScheduleError(f"{what}: it is written in or after the loop")
                others = [a for a in found if a.writes and a.buffer.name != self.buffer]
                if any(a.private is None for a in others):
                    raise ScheduleError(
                        f"{what}: a statement that writes it writes {others[0].buffer.name} too; "
                        "separate them by fission"
                    )
                producers.append(stmt)
                read |= {a.buffer.name for a in found if a.private is None} - {self.buffer}
                continue
            stale = {a.buffer.name for a in found if a.writes} & read
            if stale:
                raise ScheduleError(
                    f"{what}: {min(stale)}, from which it is computed, is written later"
                )
            if has_loop:
                used = True
                inside_loop = find(
                    Function("", (), (), stmt),
                    lambda each: isinstance(each, For) and each.variable == self.loop,
                )
                assert inside_loop is not None
                within = _reads(inside_loop.body.stmt, self.buffer, intrinsics)
                if within == 0:
                    raise ScheduleError(f"{what}: the loop does not read it")
                if within != _reads(stmt, self.buffer, intrinsics):
                    raise ScheduleError(f"{what}: it is read outside the loop too")
            elif any(a.buffer.name == self.buffer for a in found):
                raise ScheduleError(f"{what}: it is read outside the loop too")
        if not used or not producers:
            raise ScheduleError(
                f"{what}: the loop is not where the buffer is, or nothing writes it"
            )
        return producers

    def _shifted(
        self,
        stmt: Stmt,
        buffer: Buffer,
        box: Box,
        bounds: Bounds,
        intrinsics: Intrinsics,
        what: str,
    ) -> Stmt:
        """A statement that writes the buffer, made to write only the box."""
        found = accesses(stmt, Bounds(), intrinsics, of=(buffer.name,))
        index = found[0].index
        if any(access.index != index for access in found):
            raise ScheduleError(f"{what}: it is written from other elements of itself")
        for axis, (form, size) in enumerate(zip(index, buffer.shape, strict=True)):
            atom = form.atom
            whole = box.start[axis].value == 0 and box.shape[axis] == size
            if form.value is not None and whole:
                continue
            loop = find(
                Function("", (), (), stmt),
                lambda each, atom=atom: (
                    isinstance(each, For)  # type: ignore[misc]
                    and isinstance(atom, Variable)
                    and each.variable == atom.name
                ),
            )
            if loop is None or sum(form == other for other in index) != 1:
                raise ScheduleError(
                    f"{what}: its dimension {axis} is not written at a loop variable of its own; "
                    "do this before splitting that loop"
                )
            assert isinstance(loop.stmt, For)
            stmt = loop.replaced(self._narrowed(loop.stmt, axis, size, box, bounds, what)).body
        return stmt

    def _narrowed(
        self, loop: For, axis: int, size: int, box: Box, bounds: Bounds, what: str
    ) -> Stmt:
        if Simplifier(Bounds()).linear(loop.extent).value != size:
            raise ScheduleError(f"{what}: loop {loop.variable} does not write all of it")
        start = box.start[axis].to_expr()
        index = start + Variable(loop.variable)
        body = substitute(loop.body, {loop.variable: index})
        one = Box((box.start[axis],), (box.shape[axis],))
        condition = inside(one, (size,), (index,), bounds)
        if condition is not None:
            body = If(condition, body)
        return replace(loop, extent=Constant(box.shape[axis], DType.INT64), body=body)


def _at(body: Stmt, above: Sequence[tuple[Stmt, int]]) -> Stmt:
    """The statement that a path leads to."""
    for _, number in above:
        body = bodies(body)[number]
    return body


def _reads(stmt: Stmt, name: str, intrinsics: Intrinsics) -> int:
    return sum(access.reads for access in accesses(stmt, Bounds(), intrinsics, of=(name,)))


def _statements(body: Stmt) -> tuple[Stmt, ...]:
    return body.statements if isinstance(body, Block) else (body,)
