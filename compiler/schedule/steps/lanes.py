"""Running loops in vectors, accumulators and loops inside them included."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.expressions import Constant, Expr, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, Block, For, Function, If, LoopKind, Stmt, block, loops
from ...loops.legality import carried, describe
from ...loops.rewrite import substitute
from ...loops.traverse import own_expressions, variables, walk
from .redirect import redirect
from .site import check_extents, find_loop, loop_names, rename_loops

__all__ = ["Lanes", "constant_extent", "in_lanes", "piece_start", "pieces"]

Intrinsics = Mapping[str, Intrinsic]

RESTS = ("vector", "serial")


@frozen
class Lanes:
    """Run a loop in vectors of ``lanes`` iterations; the vectors go inside the loops in its body.

        for o in 20: { alloc a[]; a[] = 0; for k in K: a[] add= x[k, o]; y[o] = a[] }
        ->  alloc a[16]
            for l in 16 vector: a[l] = 0
            for k in K: for l in 16 vector: a[l] add= x[k, l]
            for l in 16 vector: y[l] = a[l]
            and the same in vectors of 4, for what is left

    Buffers that an iteration has for itself get one more dimension, for the lanes.  ``rest`` says
    how the iterations run that fill no vector: ``vector``, in a shorter one, or ``serial``.  No two
    iterations may meet in memory, and no loop inside may depend on this one.
    """

    loop: str
    lanes: int
    rest: str = "vector"

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"lanes of {self.loop}"
        site, loop = find_loop(function, self.loop)
        extent = constant_extent(loop, what)
        if self.lanes < 1 or self.rest not in RESTS:
            raise ScheduleError(
                f"{what}: {self.lanes} with a rest {self.rest!r}; required at least 1, and "
                f"one of {', '.join(RESTS)}"
            )
        conflict = carried(loop, site.bounds, intrinsics=intrinsics)
        if conflict is not None:
            raise ScheduleError(f"{what}: iterations share an element of {describe(conflict)}")
        statements = []
        for start, count, lanes in pieces(extent, self.lanes):
            if lanes < self.lanes and self.rest == "serial":
                moved = Variable(self.loop) + start if start else Variable(self.loop)
                rest = substitute(loop.body, {self.loop: moved})
                statements.append(loops(((self.loop, lanes),), rest))
                continue
            first = piece_start(f"{self.loop}.o", start, count, lanes)
            body = in_lanes(loop.body, self.loop, first, f"{self.loop}.l", lanes, what)
            statements.append(loops(((f"{self.loop}.o", count),), body) if count > 1 else body)
        others = set(loop_names(function.body)) - set(loop_names(loop))
        return site.replaced(rename_loops(block(*statements), others))


def pieces(extent: int, lanes: int) -> list[tuple[int, int, int]]:
    """First iteration, number of vectors and their lanes: whole vectors, and what is left."""
    whole, rest = divmod(extent, lanes)
    found = [(0, whole, lanes)] if whole else []
    return [*found, (whole * lanes, 1, rest)] if rest else found


def piece_start(name: str, start: int, count: int, lanes: int) -> Expr | None:
    """The first iteration of a vector of a piece, where ``name`` counts its vectors; None is 0."""
    if count == 1:
        return Constant(start, DType.INT64) if start else None
    moved = Variable(name) * lanes if lanes > 1 else Variable(name)
    return moved + start if start else moved


def constant_extent(loop: For, what: str) -> int:
    """The extent of a serial loop.  Raises ScheduleError when it is not constant."""
    if not isinstance(loop.extent, Constant) or loop.kind is not LoopKind.SERIAL:
        raise ScheduleError(f"{what}: required a serial loop of constant extent")
    return int(loop.extent.value)


def in_lanes(body: Stmt, loop: str, first: Expr | None, lane: str, lanes: int, what: str) -> Stmt:
    """``lanes`` iterations of ``body`` from ``first`` on, all of a statement's at once.

    first: None for 0.  lane: the variable of the vector loops.
    Raises ScheduleError when loops or conditions in ``body`` depend on the iteration.
    """
    own: Expr = Variable(lane) if lanes > 1 else Constant(0, DType.INT64)
    start = own if first is None else first + own if lanes > 1 else first

    def widened(stmt: Stmt) -> Stmt:
        if not any(isinstance(each, For | Allocate) for each in walk(stmt)):
            wide = substitute(stmt, {loop: start})
            return loops(((lane, lanes),), wide, LoopKind.VECTOR) if lanes > 1 else wide
        if any({loop, lane} & variables(each) for each in own_expressions(stmt)):
            raise ScheduleError(f"{what}: loops inside depend on it; required the same ones")
        match stmt:
            case Block(statements=statements):
                return block(*map(widened, statements))
            case Allocate(buffer=buffer, body=inner):
                wider = replace(buffer, shape=(*buffer.shape, lanes))
                inner = redirect(
                    inner, buffer.name, wider, lambda at: (*at, own), lambda shape: (*shape, 1)
                )
                return Allocate(wider, widened(inner))
            case For(body=inner):
                check_extents((stmt,), inner, what)
                return replace(stmt, body=widened(inner))
            case If(then=then, otherwise=otherwise):
                return If(stmt.condition, widened(then), otherwise and widened(otherwise))
            case _:
                raise ScheduleError(f"{what}: a name or a While is around a loop or a buffer")

    return widened(body)
