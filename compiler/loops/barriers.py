"""Threads of a block between barriers: what runs at once, and must not meet.

Loops over threads that follow each other have no order between different threads, unless a barrier
stands between them.  A barrier is right where all threads of the block come to it: outside of their
loops, and under no condition that depends on data.

What an asynchronous copy, or another asynchronous intrinsic, touches must rest until its thread
waits for it, whatever barriers come before that; other threads see it after a barrier that follows,
so that one directly after each wait is required.

Zeros that are stored where a copy has no source (``fills.py``) belong to the copy.

Registers are each thread's own, so that only such intrinsics leave them in no order; where a nest
uses those of another thread, ``targets/gpu`` refuses it.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from dovetail.isa.frozen import frozen, replace

from ..errors import GraphError
from .accesses import Access, accesses
from .bounds import Bounds
from .dependence import Order, may_meet
from .expressions import Constant, Expr, Scope, Variable, as_index
from .fills import fill_of
from .intrinsic import BARRIER, WAIT, WAIT_BEFORE, Intrinsic
from .ir import Allocate, Block, For, If, Invoke, Let, LoopKind, Stmt, While
from .rewrite import substitute
from .traverse import bodies, loads, walk

__all__ = ["barrier_conflict"]

Intrinsics = Mapping[str, Intrinsic]
MANY = 2
"""Waits after which nothing that began before them goes on: one that ends all counts as two."""


@frozen
class _Phase:
    """A nest over threads, and the loops around it inside of the block."""

    nest: For
    around: tuple[For, ...]


@frozen
class _Phases:
    """first: nests before any barrier.  last: after the last one.  divided: there is a barrier.

    early: nests before any wait.  pending: those with copies after the last one.  waited: there is
    a wait.  Where waits leave what began since the one before: second: nests between the first such
    wait and the next; older: those with copies before the last one; waits: how many, of any kind.
    """

    first: tuple[_Phase, ...] = ()
    last: tuple[_Phase, ...] = ()
    divided: bool = False
    early: tuple[_Phase, ...] = ()
    pending: tuple[_Phase, ...] = ()
    second: tuple[_Phase, ...] = ()
    older: tuple[_Phase, ...] = ()
    waits: int = 0

    @property
    def waited(self) -> bool:
        return self.waits > 0


class _ConflictError(GraphError):
    """Two nests over threads that touch one element."""


def barrier_conflict(body: Stmt, intrinsics: Intrinsics | None = None) -> str | None:
    """Conflict of a block's threads over one element, in no order, in words; None if there is none.

    body: what a block runs.  Raises GraphError for a barrier where threads of a block may part.
    """
    try:
        _visit(body, (), intrinsics or {})
    except _ConflictError as found:
        return str(found)
    if _is_open(body, (WAIT,)):
        return "a wait that no barrier follows: what other threads began may go on"
    return None


def _is_open(stmt: Stmt, waits: tuple[str, ...]) -> bool:
    """True if threads go on after one of ``waits`` without meeting the others, which may not yet
    have waited.

    Outside of loops a wait for what began before the last one has nothing to end.
    """
    statements = stmt.statements if isinstance(stmt, Block) else (stmt,)
    names = [each.intrinsic if isinstance(each, Invoke) else "" for each in statements]
    if any(one in waits and other != BARRIER for one, other in pairwise((*names, ""))):
        return True
    for each in statements:
        again = isinstance(each, For) and each.kind is not LoopKind.BLOCK
        inner = (WAIT, WAIT_BEFORE) if again else waits
        if any(_is_open(below, inner) for below in bodies(each)):
            return True
    return False


def _visit(stmt: Stmt, around: tuple[For, ...], intrinsics: Intrinsics) -> _Phases:
    match stmt:
        case For(kind=LoopKind.THREAD):
            _require_none(stmt, f"inside of the thread loop {stmt.variable}")
            phase = (_Phase(stmt, around),)
            copies = phase if _copies(stmt, intrinsics) else ()
            _compare_copies(copies, copies, {}, intrinsics)
            return _Phases(phase, phase, False, phase, copies)
        case For(kind=LoopKind.BLOCK, body=body):
            return _visit(body, (*around, stmt), intrinsics)
        case For(body=body):
            found = _visit(body, (*around, stmt), intrinsics)
            later = {stmt.variable: Order.LATER}
            _compare(found.last, found.first, later, intrinsics)
            _compare_copies((*found.pending, *found.older), found.early, later, intrinsics)
            # What a wait leaves goes on until the next iteration's: no further.
            after = tuple(_moved(each, stmt, Variable(stmt.variable) + 1) for each in found.second)
            _compare_copies(found.pending, after, {}, intrinsics)
            begin = tuple(_first(each, stmt) for each in found.second)
            older = (*found.older, *(found.pending if found.second else ()))
            return replace(found, second=begin, older=older)
        case Invoke(intrinsic=name) if name == BARRIER:
            return _Phases(divided=True)
        case Invoke(intrinsic=name) if name == WAIT:
            return _Phases(waits=MANY)
        case Invoke(intrinsic=name) if name == WAIT_BEFORE:
            return _Phases(waits=1)
        case Block(statements=statements):
            whole = _Phases()
            for each in statements:
                whole = _after(whole, _visit(each, around, intrinsics), intrinsics)
            return whole
        case Allocate(body=body) | Let(body=body):
            return _visit(body, around, intrinsics)
        case If(condition=condition, then=then, otherwise=otherwise):
            if any(loads(condition)):
                _require_none(stmt, "under a condition that depends on data")
            one = _visit(then, around, intrinsics)
            other = _Phases() if otherwise is None else _visit(otherwise, around, intrinsics)
            return _Phases(
                one.first + other.first,
                one.last + other.last,
                one.divided and other.divided,
                one.early + other.early,
                one.pending + other.pending,
                one.second + other.second,
                one.older + other.older,
                min(one.waits, other.waits),
            )
        case While(body=body):
            _require_none(stmt, "in a loop whose end depends on data")
            return _visit(body, around, intrinsics)
        case _:
            return _Phases()


def _require_none(stmt: Stmt, where: str) -> None:
    if any(isinstance(each, Invoke) and each.intrinsic == BARRIER for each in walk(stmt)):
        raise GraphError(f"a barrier {where}: some threads of the block may not come to it")


def _after(one: _Phases, other: _Phases, intrinsics: Intrinsics) -> _Phases:
    _compare(one.last, other.first, {}, intrinsics)
    _compare_copies((*one.pending, *one.older), other.early, {}, intrinsics)
    _compare_copies(one.pending, other.second, {}, intrinsics)
    # The nests between the first wait and the next, if the first leaves what it may.
    second = {0: other.second, 1: one.second + other.early}.get(one.waits, one.second)
    copies = tuple(each for each in other.early if _copies(each.nest, intrinsics))
    older = {0: one.older + other.older, 1: (*one.pending, *copies, *other.older)}
    return _Phases(
        one.first if one.divided else one.first + other.first,
        other.last if other.divided else one.last + other.last,
        one.divided or other.divided,
        one.early if one.waited else one.early + other.early,
        other.pending if other.waited else one.pending + other.pending,
        second,
        older.get(other.waits, other.older),
        one.waits + other.waits,
    )


def _moved(phase: _Phase, loop: For, place: Expr) -> _Phase:
    """In another iteration of a loop around it."""
    nest = substitute(phase.nest, {loop.variable: place})
    assert isinstance(nest, For)
    return _Phase(nest, phase.around)


def _first(phase: _Phase, loop: For) -> _Phase:
    """In the first iteration of a loop around it, which is around it no more."""
    kept = tuple(each for each in phase.around if each is not loop)
    return _Phase(_moved(phase, loop, as_index(0)).nest, kept)


def _is_copy(stmt: Stmt, intrinsics: Intrinsics) -> bool:
    intrinsic = intrinsics.get(stmt.intrinsic) if isinstance(stmt, Invoke) else None
    return intrinsic is not None and intrinsic.asynchronous


def _copies(stmt: Stmt, intrinsics: Intrinsics) -> bool:
    return any(_is_copy(each, intrinsics) for each in walk(stmt))


def _compare_copies(
    earlier: Sequence[_Phase],
    later: Sequence[_Phase],
    orders: Mapping[str, Order],
    intrinsics: Intrinsics,
) -> None:
    """Raise _ConflictError where a copy that nothing waited for and any thread may meet."""
    for one in earlier:
        for other in later:
            problem = _meeting(one, other, orders, intrinsics, copies=True)
            if problem is not None:
                raise _ConflictError(
                    f"{problem[0].buffer.name}: {other.nest.variable} may touch what a copy of "
                    f"{one.nest.variable} has not ended with; wait for it before"
                )


def _compare(
    earlier: Sequence[_Phase],
    later: Sequence[_Phase],
    orders: Mapping[str, Order],
    intrinsics: Intrinsics,
) -> None:
    """Raise _ConflictError where different threads may touch one element; orders: of loops around.

    Other loops around both are in the same iteration.
    """
    for one in earlier:
        for other in later:
            problem = _meeting(one, other, orders, intrinsics)
            if problem is not None:
                first, second = problem
                verb = "writes" if first.writes else "reads"
                raise _ConflictError(
                    f"{first.buffer.name}: a thread of {one.nest.variable} {verb} an element that "
                    f"another of {other.nest.variable} may {'write' if second.writes else 'read'} "
                    "at the same time; put a barrier between them"
                )


def _meeting(
    one: _Phase,
    other: _Phase,
    orders: Mapping[str, Order],
    intrinsics: Intrinsics,
    *,
    copies: bool = False,
) -> tuple[Access, Access] | None:
    """Accesses of two threads to one element; of ``copies``, one of them and any that meets it."""
    shared = []
    for mine, theirs in zip(one.around, other.around, strict=False):
        if mine is not theirs:
            break
        shared.append(mine)
        if mine.variable in orders:
            break
    given: dict[str, Order] = {loop.variable: Order.SAME for loop in shared} | dict(orders)
    chains = _chain(one.nest), _chain(other.nest)
    alike = [_extents(each) for each in chains]
    together = alike[0] == alike[1] and None not in alike[0] and not copies
    threads = chains[0] if together else []
    bodies = [one.nest, other.nest] if not threads else [chains[0][-1].body, chains[1][-1].body]
    found, fills = [], set()
    for phase, body, chain in zip((one, other), bodies, chains, strict=True):
        inner = phase.around[len(shared) :]
        # Iterations of loops around this nest alone are any, whatever those of the other are.
        names = {loop.variable: Variable(f"{loop.variable}.{id(phase)}") for loop in inner}
        own = tuple(
            For(names[loop.variable].name, loop.extent, loop.kind, loop.body) for loop in inner
        )
        if threads:
            pairs = zip(chain, threads, strict=True)
            names |= {each.variable: Variable(mine.variable) for each, mine in pairs}
        loops, renamed = (*shared, *threads, *own), substitute(body, dict(names))
        fills |= {id(fill[1]) for each in walk(renamed) if (fill := fill_of(each))}
        found.append(accesses(renamed, Bounds(), intrinsics, loops))

    def is_copy(access: Access) -> bool:
        return id(access.statement) in fills or _is_copy(access.statement, intrinsics)

    apart: list[dict[str, Order]] = [{}]
    if threads:
        names_ = [loop.variable for loop in threads]
        apart = [
            {**dict.fromkeys(names_[:place], Order.SAME), name: order}
            for place, name in enumerate(names_)
            for order in (Order.LATER, Order.EARLIER)
        ]
    for first in found[0]:
        if copies and not is_copy(first):
            continue
        for second in found[1]:
            if copies and one is other and not orders and is_copy(second):
                continue
            same = first.buffer.name == second.buffer.name
            kept = first.private is not None or second.private is not None
            if first.buffer.scope is Scope.REGISTER:
                # Asynchronous sums of one array are in order; all else waits for them.
                kept = kept or not copies or is_copy(second)
            if not same or kept or not (first.writes or second.writes):
                continue
            if any(may_meet(first, second, {**given, **each}) for each in apart):
                return first, second
    return None


def _chain(nest: For) -> list[For]:
    """The thread loop and those directly in it, one in the other."""
    found = [nest]
    while isinstance(found[-1].body, For) and found[-1].body.kind is LoopKind.THREAD:
        found.append(found[-1].body)
    return found


def _extents(chain: Sequence[For]) -> list[object]:
    return [each.extent.value if isinstance(each.extent, Constant) else None for each in chain]
