"""Tiles of results in registers while their sums run."""

from collections.abc import Callable, Mapping, Sequence
from math import prod

from dovetail.isa.frozen import frozen, replace

from ...errors import ScheduleError
from ...loops.expressions import Buffer, Constant, Expr, Load, Scope, Variable, as_index
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, For, Function, LoopKind, Stmt, Store, Update, block, loops
from ...loops.legality import band_conflict, describe
from ...loops.rewrite import map_expr, map_statement, substitute_expr
from ...loops.traverse import loads, variables, walk
from .reduction import Reduction, combined, read_reduction
from .rfactor import identity
from .site import buffer_names, fresh, rename_loops

__all__ = ["RegisterTile"]


@frozen
class RegisterTile:
    """Compute a tile of a reduction's results at a time, in registers.

        for i in 6: for j in 9: alloc c: c[] = a; for k in K: c[] add= p; S(c[])
        ->   (loops i, j; tiles i: 2; vector j of 4 lanes)
        for i in 3:
          for j in 2:
            alloc c[2, 4]:
              for i.u in 2 unrolled: for j.l in 4 vector: c[i.u, j.l] = a
              for k in K: for i.u in 2 unrolled: for j.l in 4 vector: c[i.u, j.l] add= p
              for i.u in 2 unrolled: for j.l in 4 vector: S(c[i.u, j.l])
          the same for j = 8, with 1 lane
        where i stands for i * 2 + i.u, and j for j * 4 + j.l

    loops: around the allocation, those that are tiled, outermost first; they may have been in
    another order.  sums: the loops of the sum, outermost first, without ``inner``, those inside the
    lanes.  tiles: of loops, how many values, or vectors of the one in lanes, are in a tile; they
    are unrolled in this order, but those that the read of fewest values moves with are inside: its
    values stay in registers, others are used up at once.  What is left of a loop becomes smaller
    tiles after it.

    vector: the loop in lanes; empty for none.  If it is one of the sum, each lane has its own sum,
    which are combined by a tree.  staged: the tile is copied to memory before S, whose loops stay
    serial.
    """

    buffer: str
    loops: tuple[str, ...]
    sums: tuple[str, ...]
    inner: tuple[str, ...] = ()
    vector: str = ""
    lanes: int = 1
    tiles: tuple[tuple[str, int], ...] = ()
    staged: bool = False

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"register tile of {self.buffer}"
        nest = read_reduction(function, self.buffer, what)
        self._check(nest, what, intrinsics)
        site = nest.site.up(len(self.loops))
        inside = {id(stmt) for stmt in walk(site.stmt)}
        others = {
            each.variable
            for each in walk(function.body)
            if isinstance(each, For) and id(each) not in inside
        }
        taken = buffer_names(function) - {self.buffer}
        tiled = _Tiler(self, nest, taken).around(self.loops, {})
        return site.replaced(rename_loops(tiled, others))

    def _check(self, nest: Reduction, what: str, intrinsics: Mapping[str, Intrinsic]) -> None:
        kept = nest.kept[len(nest.kept) - len(self.loops) :]
        names = [loop.variable for loop in kept]
        if len(kept) < len(self.loops) or sorted(names) != sorted(self.loops):
            found = ", ".join(loop.variable for loop in nest.kept) or "none"
            raise ScheduleError(
                f"{what}: loops {', '.join(self.loops)}; required the innermost of those directly "
                f"around it: {found}"
            )
        summed = [loop.variable for loop in nest.summed]
        own = [self.vector] if self.vector in summed else []
        if sorted((*self.sums, *self.inner, *own)) != sorted(summed):
            raise ScheduleError(
                f"{what}: sums {', '.join((*self.sums, *self.inner, *own))}; required each of "
                f"{', '.join(summed) or 'none'} once"
            )
        if self.vector and self.vector not in (*names, *summed):
            raise ScheduleError(f"{what}: no loop {self.vector!r} for the lanes")
        tiles = dict(self.tiles)
        whole = set(tiles) <= set(names) and len(tiles) == len(self.tiles)
        if (
            not whole
            or min((self.lanes, *tiles.values())) < 1
            or (self.lanes > 1) != bool(self.vector)
        ):
            raise ScheduleError(
                f"{what}: tiles {dict(self.tiles)} and {self.lanes} lanes of "
                f"{self.vector or 'no loop'}; required at least 1 of each of {', '.join(names)}"
            )
        function, start = nest.update.function, nest.start.value
        if own and start != Constant(identity(function, start.dtype), start.dtype):
            raise ScheduleError(f"{what}: lanes along the sum start from another value than 0")
        bounds = nest.site.up(len(self.loops)).bounds
        conflict = band_conflict(kept, bounds, intrinsics)
        if conflict is not None:
            raise ScheduleError(
                f"{what}: iterations of {', '.join(names)} touch the same element of "
                f"{describe(conflict)}"
            )


@frozen
class _Part:
    """Values of one loop: ``start + number``, the number below ``vectors * lanes``."""

    start: Expr
    vectors: int
    lanes: int


Place = tuple[Expr, ...]


class _Tiler:
    def __init__(self, step: RegisterTile, nest: Reduction, taken: set[str]) -> None:
        self.step, self.nest, self.taken = step, nest, taken
        self.sizes, self.tiles = nest.sizes, dict(step.tiles)

    def around(self, rest: Sequence[str], parts: Mapping[str, _Part]) -> Stmt:
        """Loops over ``rest``; ``parts`` has the loops around."""
        if not rest:
            return self.tile(parts)
        name, *inner = rest
        size = self.sizes[name]
        lanes = self.step.lanes if name == self.step.vector else 1
        statements, done = [], 0
        while done < size:
            vectors = self.tiles.get(name, 1)
            if size - done < vectors * lanes:
                vectors = max((size - done) // lanes, 1)
                lanes = min(lanes, size - done)
            step = vectors * lanes
            count = (size - done) // step
            start: Expr = as_index(done)
            if count > 1:
                moved = Variable(name) * step if step > 1 else Variable(name)
                start = moved + done if done else moved
            body = self.around(inner, {**parts, name: _Part(start, vectors, lanes)})
            statements.append(loops(((name, count),), body) if count > 1 else body)
            done += count * step
        return block(*statements)

    def tile(self, parts: Mapping[str, _Part]) -> Stmt:
        """Registers set, the sum, and its elements used."""
        step, nest = self.step, self.nest
        own = parts.get(step.vector)
        lanes = own.lanes if own is not None else 1
        across = step.lanes if step.vector and own is None else 1
        width = max(lanes, across)
        vectors = {name: parts[name].vectors for name in self.tiles if parts[name].vectors > 1}
        unrolled = tuple((f"{name}.u", vectors[name]) for name in self.order(vectors))
        shape = (*(count for _, count in unrolled), width)
        name = fresh(nest.register.name, self.taken)
        self.taken.add(name)
        register = Buffer(name, shape, nest.register.dtype, Scope.REGISTER)
        lane = f"{step.vector}.l"
        numbers = tuple(Variable(each) for each, _ in unrolled)
        values = self.values(parts, dict(unrolled), lane)

        def each(body: Stmt, size: int, kind: LoopKind = LoopKind.UNROLLED) -> Stmt:
            if size > 1:
                body = loops(((lane, size),), body, LoopKind.VECTOR)
            return loops(unrolled, body, kind)

        def place(size: int) -> Place:
            return (*numbers, Variable(lane) if size > 1 else as_index(0))

        first = substitute_expr(nest.start.value, values)
        start = each(Store(register, place(width), first), width)
        total = self.sum(register, values, each, place, across, width)
        if across > 1:
            lanes_of = [Load(register, (*numbers, as_index(n))) for n in range(across)]
            found = combined(nest.update.function, lanes_of)
            end = loops(unrolled, self.finish(values, found), LoopKind.UNROLLED)
            return Allocate(register, block(start, total, end))
        if not step.staged or not unrolled:
            end = each(self.finish(values, Load(register, place(lanes))), lanes)
            return Allocate(register, block(start, total, end))
        memory = replace(register, name=fresh(f"{name}.memory", self.taken), scope=Scope.LOCAL)
        self.taken.add(memory.name)
        copy = each(Store(memory, place(lanes), Load(register, place(lanes))), lanes)
        used = self.finish(values, Load(memory, place(lanes)))
        end = each(used, lanes, LoopKind.SERIAL)
        return Allocate(memory, block(Allocate(register, block(start, total, copy)), end))

    def order(self, vectors: Mapping[str, int]) -> list[str]:
        """The loops with more than one of ``vectors`` in a tile, the outermost first."""
        reads = [variables(load) for load in loads(self.nest.update.value)]
        counts = [prod(n for name, n in vectors.items() if name in used) for used in reads]
        inner = reads[counts.index(min(counts))] if reads else set()
        return sorted(vectors, key=lambda name: name in inner)

    def values(
        self, parts: Mapping[str, _Part], unrolled: Mapping[str, int], lane: str
    ) -> dict[str, Expr]:
        """Values of the kept loops' variables in a tile."""
        found: dict[str, Expr] = {}
        for name, part in parts.items():
            value = part.start
            if f"{name}.u" in unrolled:
                number: Expr = Variable(f"{name}.u")
                value = _plus(value, number * part.lanes if part.lanes > 1 else number)
            if part.lanes > 1:
                value = _plus(value, Variable(lane))
            found[name] = value
        return found

    def sum(
        self,
        register: Buffer,
        values: Mapping[str, Expr],
        each: Callable[[Stmt, int], Stmt],
        place: Callable[[int], Place],
        across: int,
        width: int,
    ) -> Stmt:
        """Loops over the summed labels; those in lanes are the innermost."""
        step, update = self.step, self.nest.update

        def change(size: int, more: Mapping[str, Expr]) -> Stmt:
            value = substitute_expr(update.value, {**values, **more})
            body: Stmt = Update(register, place(size), update.function, value)
            inner = tuple((name, self.sizes[name]) for name in step.inner)
            return each(loops(inner, body), size)

        outer = tuple((name, self.sizes[name]) for name in step.sums)
        if across == 1:
            return loops(outer, change(width, {}))
        name, lane = step.vector, Variable(f"{step.vector}.l")
        whole, rest = divmod(self.sizes[name], across)
        main = change(across, {name: Variable(name) * across + lane})
        statements = [loops(((name, whole),), main)]
        if rest:
            start = as_index(self.sizes[name] - rest)
            statements.append(change(rest, {name: _plus(start, lane) if rest > 1 else start}))
        return loops(outer, block(*statements))

    def finish(self, values: Mapping[str, Expr], result: Expr) -> Stmt:
        """The statement that uses the result, for which ``result`` stands."""
        name = self.nest.register.name

        def change(node: Expr) -> Expr:
            if isinstance(node, Variable):
                return values.get(node.name, node)
            return result if isinstance(node, Load) and node.buffer.name == name else node

        memo: dict[int, tuple[Expr, Expr]] = {}
        return map_statement(self.nest.finish, lambda expr: map_expr(expr, change, memo))


def _plus(a: Expr, b: Expr) -> Expr:
    """``a + b``; a constant 0 is left out."""
    return b if isinstance(a, Constant) and a.value == 0 else a + b
