"""Changes of order that keep the meaning of a program."""

from collections.abc import Mapping, Sequence

from .accesses import Access, accesses
from .bounds import Bounds
from .dependence import Order, may_meet, pairs
from .intrinsic import Intrinsic
from .ir import For, LoopKind, Stmt
from .places import places
from .text import statement_to_text

__all__ = [
    "FREE",
    "band_conflict",
    "carried",
    "describe",
    "fission_conflict",
    "join_conflict",
    "race",
    "reorder_conflict",
]

Conflict = tuple[Access, Access]
"""Two accesses to one element whose order must stay."""

AT_ONCE = frozenset({LoopKind.PARALLEL, LoopKind.BLOCK, LoopKind.THREAD})
"""Kinds whose iterations must not even update one element."""

FREE = frozenset({*AT_ONCE, LoopKind.VECTOR, LoopKind.VIRTUAL})
"""Kinds that do not keep the order of iterations."""


def carried(
    loop: For,
    bounds: Bounds,
    *,
    reductions: bool = False,
    intrinsics: Mapping[str, Intrinsic] | None = None,
) -> Conflict | None:
    """Accesses in two iterations of ``loop`` that must keep their order.

    Updates by one function may change theirs, unless ``reductions``.
    """
    touched = places(loop.body)
    open_ = {
        name
        for name, own in touched.by_buffer.items()
        if any(each.writes for each in own) and not touched.apart(name, loop.variable)
    }
    if not open_:
        return None
    later = {loop.variable: Order.LATER}
    found = accesses(loop, bounds, intrinsics, of=open_)
    for first, second in pairs(found, reductions=reductions):
        if first.loops and second.loops and may_meet(first, second, later):
            return first, second
    return None


def band_conflict(
    band: Sequence[For], bounds: Bounds, intrinsics: Mapping[str, Intrinsic] | None = None
) -> Conflict | None:
    """Accesses in two iterations of the loops ``band``, each directly in the one before it, that
    must keep their order; none for no loops.
    """
    found = pairs(accesses(band[0], bounds, intrinsics)) if band else []
    orders: dict[str, Order] = {}
    for loop in band:
        for first, second in found:
            inside = len(orders) < min(len(first.loops), len(second.loops))
            if inside and may_meet(first, second, {**orders, loop.variable: Order.LATER}):
                return first, second
        orders[loop.variable] = Order.SAME
    return None


def race(
    loop: For, bounds: Bounds, intrinsics: Mapping[str, Intrinsic] | None = None
) -> Conflict | None:
    """Accesses that a loop of its kind does in no order, and must not."""
    if loop.kind not in FREE:
        return None
    return carried(loop, bounds, reductions=loop.kind in AT_ONCE, intrinsics=intrinsics)


def reorder_conflict(
    band: Sequence[For],
    order: Sequence[str],
    bounds: Bounds,
    intrinsics: Mapping[str, Intrinsic] | None = None,
) -> Conflict | None:
    """Accesses whose order changes when the loops ``band``, each directly in the one before it,
    are put in the order of ``order``, outermost first.
    """
    before = [loop.variable for loop in band]
    place = {name: position for position, name in enumerate(order)}
    turned = [
        (outer, inner)
        for position, outer in enumerate(before)
        for inner in before[position + 1 :]
        if place[inner] < place[outer]
    ]
    for first, second in pairs(accesses(band[0], bounds, intrinsics)):
        if len(first.loops) < len(band) or len(second.loops) < len(band):
            continue
        for outer, inner in turned:
            # The second runs later, by loop `outer`; in the new order it would run earlier, by
            # `inner`: all loops outside those two, before or after, are in the same iteration.
            same = {*before[: before.index(outer)], *order[: place[inner]]}
            orders = dict.fromkeys(same, Order.SAME)
            if may_meet(first, second, {**orders, outer: Order.LATER, inner: Order.EARLIER}):
                return first, second
    return None


def fission_conflict(
    loop: For,
    first: Stmt,
    second: Stmt,
    bounds: Bounds,
    intrinsics: Mapping[str, Intrinsic] | None = None,
) -> Conflict | None:
    """Accesses whose order changes when ``for: first; second`` becomes two loops: one of
    ``second`` and one of ``first`` in a later iteration.
    """
    earlier, later = (accesses(part, bounds, intrinsics, (loop,)) for part in (first, second))
    return _meeting(later, earlier, {loop.variable: Order.LATER})


def join_conflict(
    joined: For,
    first: Stmt,
    second: Stmt,
    bounds: Bounds,
    intrinsics: Mapping[str, Intrinsic] | None = None,
) -> Conflict | None:
    """Accesses whose order changes when two loops become ``joined``, of body ``first; second``:
    one of ``first`` and one of ``second`` in an earlier iteration.
    """
    earlier, later = (accesses(part, bounds, intrinsics, (joined,)) for part in (first, second))
    return _meeting(earlier, later, {joined.variable: Order.EARLIER})


def describe(conflict: Conflict) -> str:
    """The conflict in words."""
    first, second = conflict
    one, other = (statement_to_text(each.statement).splitlines()[0] for each in conflict)
    if first.statement is second.statement:
        return f"{first.buffer.name}, by {one!r} in two iterations"
    return f"{first.buffer.name}, by {one!r} and {other!r}"


def _meeting(
    firsts: Sequence[Access], seconds: Sequence[Access], orders: Mapping[str, Order]
) -> Conflict | None:
    for first in firsts:
        for second in seconds:
            same = first.buffer.name == second.buffer.name
            if same and not first.commutes(second) and may_meet(first, second, orders):
                return first, second
    return None
