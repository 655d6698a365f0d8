"""Going through several nests, which hand buffers on to each other, a part at a time."""

from collections.abc import Mapping, Sequence

from dovetail.isa.frozen import frozen, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.affine import Linear, linear
from ...loops.bounds import Bounds
from ...loops.expressions import Buffer, Constant, Expr, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, Block, For, Function, If, Stmt, block, loops
from ...loops.legality import carried, describe
from ...loops.places import Place, places
from ...loops.rewrite import (
    map_buffers,
    map_expr,
    map_statement,
    substitute,
    substitute_expr,
    with_bodies,
)
from ...loops.traverse import bodies, loads, walk, written
from .guards import decided
from .lanes import constant_extent
from .redirect import redirect
from .site import Site, buffer_names, check_extents, find_loop, fresh, loop_names
from .tile import band

__all__ = ["Cut", "Strips"]

Intrinsics = Mapping[str, Intrinsic]


@frozen
class Strips:
    """Go through all nests of a block strip by strip, with room in its buffers for one strip.

        alloc v[40]: { for i in 40: v[i] = S;  for j in 40: y[j] = v[j] }
        ->  for i.s in 3: alloc v[10]: { for i in 10: v[i] = S[10 * i.s + i]
                                         for j in 10: y[10 * i.s + j] = v[j] }
            alloc v.last[10]: { the same from 30 on }

    ``loops`` are i and j, one in each nest, each loop directly in the one before it.  Their extents
    are multiples of the least of them; a strip has ``rows`` of it; the last strip, which may be
    smaller, comes alone, or with ``joined`` in the same loop, under a condition.  The dimension
    of a buffer that these loops move in is cut; each loop moves through all of it in order.  Apart
    from those buffers, no nest touches what another one writes, or reads what it writes itself.
    Guards that always hold in a strip, or never, vanish there.
    """

    loops: tuple[str, ...]
    rows: int
    joined: bool = False

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"strips of {', '.join(self.loops)}"
        site = _block(function, self.loops, what)
        assert isinstance(site.stmt, Block)
        own = [find_loop(function, name)[1] for name in self.loops]
        extents = [constant_extent(loop, what) for loop in own]
        count = min(extents)
        if not 1 <= self.rows <= count or any(extent % count for extent in extents):
            raise ScheduleError(f"{what}: extents {extents}; required multiples of one")
        buffers: list[Buffer] = []
        while site.above and isinstance(site.above[-1][0], Allocate):
            site = site.up(1)
            assert isinstance(site.stmt, Allocate)
            buffers.append(site.stmt.buffer)
        inner = _inner(site.stmt)
        axes = _Nests(inner, own, site.bounds, intrinsics, what).axes(buffers, count)
        scales = [extent // count for extent in extents]
        names = buffer_names(function)

        def strip(start: Expr | None, rows: int, last: bool) -> Stmt:
            parts = []
            local = [
                replace(each, shape=_cut(each.shape, axes[each.name], rows, count))
                for each in buffers
            ]
            for stmt, loop, scale in zip(inner.statements, own, scales, strict=True):
                touched = places(stmt).by_buffer
                for old, new in zip(buffers, local, strict=True):
                    if old.name in touched:
                        stmt = _localised(stmt, loop.variable, old, new)
                parts.append(_moved(stmt, loop.variable, start, scale, rows))
            body = block(*parts)
            for buffer in local:
                body = Allocate(buffer, body)
            return _with_own_loops(_renamed(body, names), loop_names(body)) if last else body

        number = Variable(f"{self.loops[0]}.s")
        whole = (count - 1) // self.rows
        start = number * self.rows if whole > 1 or self.joined else None
        last = strip(_index(whole * self.rows), count - whole * self.rows, whole > 0)
        if whole == 0:
            result = last
        elif self.joined:
            either = If(number < whole, strip(start, self.rows, False), last)
            result = loops(((number.name, whole + 1),), either)
        else:
            first = strip(start, self.rows, False)
            nest = ((number.name, whole),) if whole > 1 else ()
            result = block(loops(nest, first), last)
        return site.replaced(decided(result, site.bounds))


@frozen
class Cut:
    """Cut a loop of a nest in two, each in a nest of its own.

        for b: for i in N: S   ->   for b: for i in at: S
                                    for b: for i.rest in N - at: S[i = i.rest + at]

    ``nest`` is b, with i in it, each loop directly in the one before it; no iterations of these
    loops meet in memory.  Guards that always hold in one of the two, or never, vanish there.
    """

    nest: str
    loop: str
    at: int

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"cut of {self.loop} in {self.nest}"
        site, outer = find_loop(function, self.nest)
        nest = band(outer)
        loop = next((each for each in nest if each.variable == self.loop), None)
        extent = constant_extent(loop, what) if loop is not None else 0
        if loop is None or not 0 < self.at < extent:
            raise ScheduleError(f"{what}: required a loop in it, of more than {self.at} iterations")
        bounds = site.bounds
        check_extents(nest[: nest.index(loop)], outer.body, what)
        for each in nest[: nest.index(loop) + 1]:
            conflict = carried(each, bounds, intrinsics=intrinsics)
            if conflict is not None:
                raise ScheduleError(f"{what}: iterations share an element of {describe(conflict)}")
            bounds = bounds.loop(each.variable, each.extent)
        first = _moved(outer, self.loop, None, 1, self.at)
        second = _moved(outer, self.loop, _index(self.at), 1, extent - self.at)
        rest = _with_own_loops(second, loop_names(function.body), ".rest")
        return site.replaced(decided(block(first, rest), site.bounds))


@frozen
class _Nests:
    """Nests that come one after the other, and the loops that are cut in them."""

    block: Block
    loops: Sequence[For]
    bounds: Bounds
    intrinsics: Intrinsics
    what: str

    def axes(self, buffers: Sequence[Buffer], count: int) -> dict[str, int]:
        """The dimension of each buffer that is cut."""
        self.check(buffers)
        found: dict[str, set[int]] = {each.name: set() for each in buffers}
        for stmt, loop in zip(self.block.statements, self.loops, strict=True):
            touched = places(stmt)
            for name in found.keys() & touched.by_buffer.keys():
                for place in touched.by_buffer[name]:
                    found[name].add(self.axis(place, touched.extents, loop, count))
        if any(len(each) != 1 for each in found.values()):
            raise ScheduleError(f"{self.what}: a buffer is not gone through in one dimension")
        return {name: axis for name, (axis,) in found.items()}

    def check(self, buffers: Sequence[Buffer]) -> None:
        """Raise ScheduleError where the order of iterations counts."""
        own = {each.name for each in buffers}
        outputs = [written(stmt) - own - self.private(own) for stmt in self.block.statements]
        several = {name for name in set().union(*outputs) if sum(name in x for x in outputs) > 1}
        if several or set().union(*outputs) & {load.buffer.name for load in loads(self.block)}:
            raise ScheduleError(f"{self.what}: a nest reads or writes what another one writes")
        for stmt, loop in zip(self.block.statements, self.loops, strict=True):
            bounds, nest = self.bounds, band(stmt) if isinstance(stmt, For) else []
            if loop not in nest:
                raise ScheduleError(f"{self.what}: {loop.variable} is not alone in its nest")
            for each in nest:
                conflict = carried(each, bounds, intrinsics=self.intrinsics)
                if conflict is not None:
                    raise ScheduleError(
                        f"{self.what}: iterations share an element of {describe(conflict)}"
                    )
                bounds = bounds.loop(each.variable, each.extent)
                if each is loop:
                    break

    def private(self, own: set[str]) -> set[str]:
        """Buffers that iterations have for themselves."""
        found = {each.buffer.name for each in walk(self.block) if isinstance(each, Allocate)}
        return found - own

    def axis(self, place: Place, extents: Mapping[str, int], loop: For, count: int) -> int:
        """The dimension that ``loop`` moves a place in, by equal parts of it."""
        scale = constant_extent(loop, self.what) // count
        for axis, form in enumerate(map(linear, place.index)):
            step = form.coefficient(loop.variable)
            if step == 0:
                continue
            rest = form - Linear(0, {Variable(loop.variable): step})
            if any(
                not isinstance(each, Variable) or each.name not in extents for each in rest.terms
            ):
                break
            least, most = rest.limits(extents)
            if 0 <= least <= most < step and step * scale * count == place.buffer.shape[axis]:
                return axis
        raise ScheduleError(f"{self.what}: {place.buffer.name} is not gone through part by part")


def _block(function: Function, names: Sequence[str], what: str) -> Site:
    """The site of the innermost block with one of the loops in each of its statements."""
    site, _ = find_loop(function, names[0])
    for level in range(1, len(site.above) + 1):
        outer = site.up(level)
        if isinstance(outer.stmt, Block) and len(outer.stmt.statements) == len(names):
            inside = [set(loop_names(each)) for each in outer.stmt.statements]
            if all(name in found for name, found in zip(names, inside, strict=True)):
                return outer
    raise ScheduleError(f"{what}: required one loop in each statement of a block")


def _inner(stmt: Stmt) -> Block:
    while isinstance(stmt, Allocate):
        stmt = stmt.body
    assert isinstance(stmt, Block)
    return stmt


def _cut(shape: tuple[int, ...], axis: int, rows: int, count: int) -> tuple[int, ...]:
    return (*shape[:axis], shape[axis] // count * rows, *shape[axis + 1 :])


def _localised(stmt: Stmt, loop: str, old: Buffer, new: Buffer) -> Stmt:
    """``stmt`` with accesses to ``new``, whose indices know the loop by another name."""
    own = {loop: Variable(f"{loop}.own")}
    return redirect(
        stmt, old.name, new, lambda indices: tuple(substitute_expr(each, own) for each in indices)
    )


def _moved(stmt: Stmt, name: str, start: Expr | None, scale: int, rows: int) -> Stmt:
    """``stmt`` with the part of a loop that begins at ``start``, None for 0."""
    if not isinstance(stmt, For) or stmt.variable != name:
        return with_bodies(stmt, tuple(_moved(x, name, start, scale, rows) for x in bodies(stmt)))
    values: dict[str, Expr] = {f"{name}.own": Variable(name)}
    if start is not None:
        values[name] = (start * scale if scale > 1 else start) + Variable(name)
    return replace(stmt, extent=_index(rows * scale), body=substitute(stmt.body, values))


def _with_own_loops(stmt: Stmt, taken: Sequence[str], suffix: str = "") -> Stmt:
    """``stmt``, a copy, with other names for its loops; what it names by lets is its own anyway."""
    new = {name: Variable(fresh(f"{name}{suffix}", taken)) for name in loop_names(stmt)}
    memo: dict[int, tuple[Expr, Expr]] = {}

    def change(node: Expr) -> Expr:
        return new.get(node.name, node) if isinstance(node, Variable) else node

    def loop(each: Stmt) -> Stmt:
        if not isinstance(each, For):
            return each
        return replace(each, variable=new[each.variable].name)

    return map_statement(stmt, lambda expr: map_expr(expr, change, memo), loop)


def _renamed(stmt: Stmt, names: set[str]) -> Stmt:
    """``stmt`` with other names for its buffers."""
    taken = set(names)
    new = {}
    for each in walk(stmt):
        if isinstance(each, Allocate):
            name = fresh(f"{each.buffer.name}.last", taken)
            taken.add(name)
            new[each.buffer.name] = replace(each.buffer, name=name)
    return map_buffers(stmt, lambda buffer: new.get(buffer.name, buffer))


def _index(value: int) -> Constant:
    return Constant(value, DType.INT64)
