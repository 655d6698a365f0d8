"""Steps that change where values are computed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.accesses import Access, accesses
from ...loops.arithmetic import integer_limits
from ...loops.bounds import Bounds
from ...loops.expressions import (
    BinaryFunction,
    Buffer,
    Constant,
    Expr,
    Load,
    Scope,
    Variable,
)
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, Block, For, Function, If, Let, Stmt, Store, Update, block, loops
from ...loops.regions import Box, box_of, covers
from ...loops.rewrite import (
    bodies,
    loads,
    map_expr,
    map_statement,
    substitute,
    substitute_expr,
    variables,
    walk,
)
from ...loops.simplify import Simplifier
from .redirect import box_loops, guarded, inside, offsets, redirect
from .site import Site, buffer_names, find, find_allocation, find_loop, fresh, loop_names

__all__ = ["ComputeAt", "Inline", "Rfactor"]

Intrinsics = Mapping[str, Intrinsic]


@dataclass(frozen=True, slots=True)
class Inline:
    """Compute the elements of an allocated buffer where they are read.

        alloc t: for i: t[i] = f(x[i]);  for j: y[j] = t[j + 1]   ->   for j: y[j] = f(x[j + 1])

    One store, whose indices are different loop variables (or the only index of a dimension), writes
    the buffer, and what it reads is not written after it.
    """

    buffer: str

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"inline of {self.buffer}"
        site, allocation = find_allocation(function, self.buffer)
        buffer = allocation.buffer
        writes = [
            stmt
            for stmt in walk(allocation.body)
            if not isinstance(stmt, Allocate)
            and any(a.writes and a.buffer.name == buffer.name for a in _own(stmt, intrinsics))
        ]
        if len(writes) != 1 or not isinstance(writes[0], Store):
            raise ScheduleError(
                f"{what}: required one store that writes it, found {len(writes)} writes"
            )
        store = writes[0]
        inner = find(replace(function, body=allocation.body), lambda stmt: stmt is store)
        assert inner is not None
        value, indices = _with_lets(store, inner)
        names = [index.name if isinstance(index, Variable) else None for index in indices]
        bound = {stmt.variable for stmt, _ in inner.above if isinstance(stmt, For)}
        for index, size in zip(indices, buffer.shape, strict=True):
            if not (isinstance(index, Variable) and index.name in bound) and size != 1:
                raise ScheduleError(f"{what}: it is written at an index that is no loop variable")
        given = [name for name in names if name is not None]
        if len(set(given)) != len(given):
            raise ScheduleError(f"{what}: it is written at one variable in two dimensions")
        used = variables(value) & (bound - set(given))
        if used:
            raise ScheduleError(
                f"{what}: its value depends on {min(used)}, which is no index of it"
            )
        self._check_sources(value, allocation, inner, intrinsics, what)
        top = inner.replaced(Block(())).body
        memo: dict[int, tuple[Expr, Expr]] = {}

        def compute(node: Expr) -> Expr:
            if not isinstance(node, Load) or node.buffer.name != buffer.name:
                return node
            chosen = {
                name: index
                for name, index in zip(names, node.indices, strict=True)
                if name is not None
            }
            return substitute_expr(value, chosen)

        body = map_statement(top, lambda expr: map_expr(expr, compute, memo))
        return site.simplified(body)

    def _check_sources(
        self, value: Expr, allocation: Allocate, inner: Site, intrinsics: Intrinsics, what: str
    ) -> None:
        read = {load.buffer.name for load in loads(value)}
        if self.buffer in read:
            raise ScheduleError(f"{what}: its value depends on it")
        statements = _statements(allocation.body)
        top = inner.above[0][0] if inner.above else allocation.body
        number = inner.above[0][1] if isinstance(top, Block) else 0
        for access in accesses(block(*statements[number:]), Bounds(), intrinsics):
            if access.writes and access.buffer.name in read:
                raise ScheduleError(
                    f"{what}: {access.buffer.name}, from which it is computed, is written later"
                )
            if access.reads and access.buffer.name == self.buffer:
                name = access.statement
                if not isinstance(name, Store | Update | For | If | Let):
                    raise ScheduleError(f"{what}: an intrinsic reads it")


def _own(stmt: Stmt, intrinsics: Intrinsics) -> list[Access]:
    """The accesses of a statement that has no bodies."""
    return accesses(stmt, Bounds(), intrinsics) if not bodies(stmt) else []


def _statements(body: Stmt) -> tuple[Stmt, ...]:
    return body.statements if isinstance(body, Block) else (body,)


def _with_lets(store: Store, inner: Site) -> tuple[Expr, tuple[Expr, ...]]:
    """The value and indices of a store with what lets around it stand for put in."""
    value, indices = store.value, store.indices
    for outer, _ in reversed(inner.above):
        if isinstance(outer, Let):
            known = {outer.variable.name: outer.value}
            value = substitute_expr(value, known)
            indices = tuple(substitute_expr(index, known) for index in indices)
    return value, indices


@dataclass(frozen=True, slots=True)
class ComputeAt:
    """Compute what an iteration of a loop reads of a buffer at the start of the iteration.

        alloc t[N]: for i in N: t[i] = f(i);  for j: for k in 4: y[..] = t[4 * j + k]
        ->   for j: alloc t[4]: for i in 4: t[i] = f(4 * j + i);  for k in 4: y[..] = t[k]

    All reads of the buffer are in the loop.  The statements that write it come before, write
    nothing else, and use one loop for each dimension as its index; what they read is not written
    later.  Elements that two iterations read are computed twice.
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
        found = [
            access
            for access in accesses(place.stmt, place.bounds, intrinsics)
            if access.buffer.name == buffer.name
        ]
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
                within = _reads(inside_loop.stmt, self.buffer, intrinsics)
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
        found = [a for a in accesses(stmt, Bounds(), intrinsics) if a.buffer.name == buffer.name]
        index = found[0].index
        if any(access.index != index for access in found):
            raise ScheduleError(f"{what}: it is written from other elements of itself")
        for axis, (form, size) in enumerate(zip(index, buffer.shape, strict=True)):
            atom = form.atom
            if size == 1 and form.value == 0:
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
    return sum(
        access.reads and access.buffer.name == name
        for access in accesses(stmt, Bounds(), intrinsics)
    )


@dataclass(frozen=True, slots=True)
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
        found = [
            access
            for access in accesses(root, bounds, intrinsics)
            if access.buffer.name == update.buffer.name
        ]
        if len(found) != 1:
            raise ScheduleError(f"{what}: its result is read there")
        target = update.buffer
        box = box_of(found, target.shape, bounds)
        if not covers(replace_guards(found[0], bounds), box, target.shape, bounds):
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
        identity = Constant(_identity(update.function, target.dtype), target.dtype)
        lane = Variable(self.loop)
        start = offsets(box)

        def change(stmt: Stmt) -> Stmt:
            if stmt is not update:
                return stmt
            return replace(update, buffer=partial, indices=(lane, *start(update.indices)))

        first, last = self._nests(function, partial, box, lanes)
        (around, at), (around_last, at_last) = first, last
        begin = loops(around, Store(partial, at, identity))
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


def replace_guards(access: Access, bounds: Bounds) -> Access:
    """The access without guards: elements that are not updated stay, as an identity keeps them."""
    return replace(access, bounds=Bounds(access.bounds.ranges, bounds.facts), conditional=False)


def _identity(function: BinaryFunction, dtype: DType) -> int | float | bool:
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
