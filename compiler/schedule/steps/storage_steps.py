"""Steps that change where values are kept."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen, replace

from ...errors import ScheduleError
from ...loops.accesses import Access, accesses
from ...loops.bounds import Bounds
from ...loops.dependence import Order, may_meet, pairs
from ...loops.expressions import Buffer, Expr, Scope, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, Block, For, Function, Invoke, LoopKind, Stmt, While, block
from ...loops.regions import Box, box_of, covers
from ...loops.rewrite import map_buffers
from ...loops.simplify import Simplifier
from ...loops.traverse import walk
from .redirect import copy, offsets, redirect
from .site import Site, buffer_names, find_allocation, find_loop, fresh, loop_names

__all__ = ["CacheRead", "CacheWrite", "Lift", "SetLayout", "SetScope"]

Intrinsics = Mapping[str, Intrinsic]

IN_ORDER = (LoopKind.SERIAL, LoopKind.UNROLLED)


@frozen
class CacheRead:
    """Read a box of a buffer once, into a buffer of its own, in each iteration of a loop.

        for i: ... x[4 * i + j] ...   ->   for i:
                                             alloc c[4]
                                             for c.0 in 4: c[c.0] = x[4 * i + c.0]
                                             ... c[j] ...

    The box is what one iteration reads; nothing in it writes the buffer.  An empty ``loop`` is the
    whole function.
    """

    buffer: str
    loop: str
    scope: Scope
    name: str = ""

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"cache_read of {self.buffer} in {self.loop or function.name}"
        site, found = _body(function, self.buffer, self.loop, intrinsics, what)
        if any(access.writes for access in found):
            raise ScheduleError(f"{what}: it is written there; use cache_write")
        buffer, box, cache = _cache(function, found, site.bounds, self.scope, self.name)
        names = _axes(function, cache)
        load = copy(buffer, cache, box, names, site.bounds, out=False)
        body = redirect(site.stmt, buffer.name, cache, offsets(box))
        return site.simplified(Allocate(cache, block(load, body)))


@frozen
class CacheWrite:
    """Keep a box of a buffer in a buffer of its own during each iteration of a loop.

        for i: for k: y[i] add= v   ->   for i:
                                           alloc c[1]
                                           c[0] = y[i]
                                           for k: c[0] add= v
                                           y[i] = c[0]

    The box is what one iteration touches, and the iteration writes all of it.  The first copy is
    left out where the iteration begins by writing the whole box.  An empty ``loop`` is the whole
    function.
    """

    buffer: str
    loop: str
    scope: Scope
    name: str = ""

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"cache_write of {self.buffer} in {self.loop or function.name}"
        site, found = _body(function, self.buffer, self.loop, intrinsics, what)
        if not any(access.writes for access in found):
            raise ScheduleError(f"{what}: it is only read there; use cache_read")
        buffer, box, cache = _cache(function, found, site.bounds, self.scope, self.name)
        whole = [a for a in found if covers(a, box, buffer.shape, site.bounds)]
        if not any(access.writes for access in whole):
            raise ScheduleError(
                f"{what}: it is not shown that one iteration writes all of the box "
                f"{list(box.shape)} that it touches; take an inner loop"
            )
        names = _axes(function, cache)
        parts = [redirect(site.stmt, buffer.name, cache, offsets(box))]
        if not _starts_anew(site.stmt, site.bounds, buffer, box, intrinsics):
            reads = next(number for number, access in enumerate(found) if access.reads)
            stores = any(not access.reads for access in found[:reads])
            if stores or not any(access.reads for access in whole):
                raise ScheduleError(
                    f"{what}: it is not shown that the box holds anything before it; "
                    "take an inner loop"
                )
            parts.insert(0, copy(buffer, cache, box, names, site.bounds, out=False))
            names = tuple(f"{name}.out" for name in names)
        parts.append(copy(cache, buffer, box, names, site.bounds, out=True))
        return site.simplified(Allocate(cache, block(*parts)))


def _starts_anew(
    body: Stmt, bounds: Bounds, buffer: Buffer, box: Box, intrinsics: Intrinsics
) -> bool:
    """True if every element of the box is stored before it is read.

    Shown where the first statement that touches the buffer only writes, and all of the box; or is a
    loop in each of whose iterations this holds, and no two of them touch one element.
    """
    for stmt in body.statements if isinstance(body, Block) else (body,):
        found = _of(buffer.name, stmt, bounds, intrinsics)
        if not found:
            continue
        if not any(covers(access, box, buffer.shape, bounds) for access in found):
            return False
        if not any(access.reads for access in found):
            return True
        if not isinstance(stmt, For):
            return False
        later = {stmt.variable: Order.LATER}
        if any(may_meet(*pair, later) for pair in pairs(found, reductions=True)):
            return False
        inner = bounds.loop(stmt.variable, Simplifier(bounds).expr(stmt.extent))
        part = box_of(_of(buffer.name, stmt.body, inner, intrinsics), buffer.shape, inner)
        return _starts_anew(stmt.body, inner, buffer, part, intrinsics)
    return False


def _of(name: str, stmt: Stmt, bounds: Bounds, intrinsics: Intrinsics) -> list[Access]:
    return accesses(stmt, bounds, intrinsics, of=(name,))


def _body(
    function: Function, name: str, loop: str, intrinsics: Intrinsics, what: str
) -> tuple[Site, list[Access]]:
    """The body of a loop, or the function's, and its accesses to a buffer."""
    site = find_loop(function, loop)[0].body if loop else Site(function, function.body, ())
    site = site.down(name)
    found = _of(name, site.stmt, site.bounds, intrinsics)
    if not found:
        raise ScheduleError(f"{what}: it is not touched there")
    if any(access.private is not None for access in found):
        raise ScheduleError(f"{what}: it is allocated inside; lift it first")
    return site, found


def _cache(
    function: Function, found: list[Access], bounds: Bounds, scope: Scope, name: str
) -> tuple[Buffer, Box, Buffer]:
    buffer = found[0].buffer
    box = box_of(found, buffer.shape, bounds)
    taken = buffer_names(function)
    if name in taken:
        raise ScheduleError(f"there is a buffer {name!r} already")
    chosen = name or fresh(f"{buffer.name}.{scope}", taken)
    return buffer, box, Buffer(chosen, box.shape, buffer.dtype, scope)


def _axes(function: Function, cache: Buffer) -> tuple[str, ...]:
    taken = loop_names(function.body)
    return tuple(fresh(f"{cache.name}.{axis}", taken) for axis in range(len(cache.shape)))


@frozen
class Lift:
    """Move an allocation out of a loop, with one more dimension for the loop's iterations.

        for i in N: alloc t[4]: S   ->   alloc t[N, 4]: for i in N: S[t[x] = t[i, x]]

    The new dimension is number ``axis``.  Without ``expand`` there is none: iterations share the
    buffer, for a loop whose iterations run one after the other.
    """

    buffer: str
    loop: str
    axis: int = 0
    expand: bool = True

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"lift of {self.buffer} out of {self.loop}"
        site, allocation = find_allocation(function, self.buffer)
        above = [stmt for stmt, _ in site.above]
        inner = [stmt.variable for stmt in above if isinstance(stmt, For)]
        if self.loop not in inner:
            raise ScheduleError(
                f"{what}: it is allocated in the loops {', '.join(inner) or 'none'}"
            )
        levels = 1
        while not (isinstance(above[-levels], For) and above[-levels].variable == self.loop):  # type: ignore[union-attr]
            between = above[-levels]
            if isinstance(between, For | While):
                name = between.variable if isinstance(between, For) else "a while"
                raise ScheduleError(f"{what}: {name} is between them; lift it out of that first")
            levels += 1
        outside = site.up(levels)
        loop = outside.stmt
        assert isinstance(loop, For)
        old, new = allocation.buffer, allocation.buffer
        body = allocation.body
        if self.expand:
            if not 0 <= self.axis <= len(old.shape):
                raise ScheduleError(f"{what}: axis {self.axis}; required 0 to {len(old.shape)}")
            extent = outside.bounds.of(loop.extent)[1]
            new = replace(old, shape=_inserted(old.shape, self.axis, extent))

            def index(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
                return _inserted(indices, self.axis, Variable(self.loop))

            body = redirect(
                body, old.name, new, index, lambda shape: _inserted(shape, self.axis, 1)
            )
        elif loop.kind not in IN_ORDER:
            raise ScheduleError(f"{what}: the loop is {loop.kind}; its iterations cannot share it")
        stripped = site.replaced(body)
        found, moved = find_loop(stripped, self.loop)
        return found.replaced(Allocate(new, moved))


def _inserted(values: tuple, axis: int, value: object) -> tuple:  # type: ignore[type-arg]
    return (*values[:axis], value, *values[axis:])


@frozen
class SetScope:
    """Allocate a buffer in another scope.

    alloc t[4] local   ->   alloc t[4] register
    """

    buffer: str
    scope: Scope

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        site, allocation = find_allocation(function, self.buffer)
        new = replace(allocation.buffer, scope=self.scope)
        return site.replaced(_exchanged(allocation, new))


def _exchanged(allocation: Allocate, new: Buffer) -> Stmt:
    old = allocation.buffer
    body = map_buffers(allocation.body, lambda each: new if each.name == old.name else each)
    return Allocate(new, body)


@frozen
class SetLayout:
    """Store an allocated buffer in tiles, and its dimensions in another order.

        t[N, C], t[n, c]   ->   t[C / 8, N, 8], t[c // 8, n, c % 8]

    is of the tiles ``((1, 8),)`` and the order ``(1, 0, 2)``.

    ``tiles`` are pairs of a dimension and a size that cut it in two, one after the other: each pair
    names a dimension of what those before it made.  ``order`` lists the dimensions then; empty: as
    they are.  What does not fill a tile stays unused.
    """

    buffer: str
    tiles: tuple[tuple[int, int], ...] = ()
    order: tuple[int, ...] = ()

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"layout of {self.buffer}"
        site, allocation = find_allocation(function, self.buffer)
        old = allocation.buffer
        if any(buffer.name == old.name for buffer in _regions(allocation.body)):
            raise ScheduleError(f"{what}: an intrinsic uses it; set the layout before tensorize")
        shape = old.shape
        for axis, size in self.tiles:
            if not 0 <= axis < len(shape) or size < 1:
                raise ScheduleError(f"{what}: no tiles of {size} in dimension {axis} of {shape}")
            shape = (*shape[:axis], -(-shape[axis] // size), size, *shape[axis + 1 :])
        order = self.order or tuple(range(len(shape)))
        if sorted(order) != list(range(len(shape))):
            raise ScheduleError(f"{what}: order {order} is none of {len(shape)} dimensions")

        def index(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
            for axis, size in self.tiles:
                at = indices[axis]
                indices = (*indices[:axis], at // size, at % size, *indices[axis + 1 :])
            return tuple(indices[axis] for axis in order)

        new = replace(old, shape=tuple(shape[axis] for axis in order))
        return site.simplified(Allocate(new, redirect(allocation.body, old.name, new, index)))


def _regions(stmt: Stmt) -> list[Buffer]:
    return [
        region.buffer for each in walk(stmt) if isinstance(each, Invoke) for region in each.operands
    ]
