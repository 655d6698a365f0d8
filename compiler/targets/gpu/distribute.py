"""Buffers of a block in which every thread has a part: they become the threads' own.

alloc acc[T, 4] register: for t in T thread: acc[t, i] = ...;  for u in T thread: ... acc[u, i]
->   alloc acc[4] register: for t in T thread: acc[i] = ...;  for u in T thread: ... acc[i]
"""

from dataclasses import replace

from ...loops.expressions import Buffer, Expr, Load, Scope, Variable, as_index
from ...loops.ir import Allocate, For, Invoke, LoopKind, Region, Stmt, Store, Update
from ...loops.rewrite import map_expr, map_statement, with_bodies
from ...loops.traverse import bodies, loads, own_expressions
from .tensor_cores import lanes_of

__all__ = ["distributed", "thread_dimensions"]


def distributed(stmt: Stmt) -> Stmt:
    """The statement with such buffers, in registers, as arrays of each thread."""
    if isinstance(stmt, For) and stmt.kind is LoopKind.THREAD:
        return stmt
    below = tuple(distributed(each) for each in bodies(stmt))
    stmt = with_bodies(stmt, below) if below else stmt
    if not isinstance(stmt, Allocate) or stmt.buffer.scope is not Scope.REGISTER:
        return stmt
    count = thread_dimensions(stmt.body, stmt.buffer, ())
    if not count:
        return stmt
    old = stmt.buffer
    new = replace(old, shape=old.shape[count:])

    def own(node: Expr) -> Expr:
        if isinstance(node, Load) and node.buffer == old:
            return Load(new, node.indices[count:])
        return node

    def change(each: Stmt) -> Stmt:
        if isinstance(each, Store | Update) and each.buffer == old:
            return replace(each, buffer=new, indices=each.indices[count:])
        if isinstance(each, Invoke):
            return replace(each, operands=tuple(map(region, each.operands)))
        return each

    def region(each: Region) -> Region:
        if each.buffer != old:
            return each
        return Region(new, each.start[count:], each.shape[count:])

    memo: dict[int, tuple[Expr, Expr]] = {}
    return Allocate(new, map_statement(stmt.body, lambda e: map_expr(e, own, memo), change))


def thread_dimensions(
    stmt: Stmt, buffer: Buffer, around: tuple[tuple[str, Expr], ...]
) -> int | None:
    """Number of leading indices that are the threads' in every access, of loops of equal extents.

    None where they are not; 0 where there is no access.
    """
    if isinstance(stmt, For) and stmt.kind is LoopKind.THREAD:
        around = (*around, (stmt.variable, stmt.extent))
    found = {thread_dimensions(each, buffer, around) for each in bodies(stmt)} - {0}
    places = [
        load.indices
        for expr in own_expressions(stmt)
        for load in loads(expr)
        if load.buffer == buffer
    ]
    if isinstance(stmt, Store | Update) and stmt.buffer == buffer:
        places.append(stmt.indices)
    if isinstance(stmt, Invoke) and any(each.buffer == buffer for each in stmt.operands):
        return _of_warps(stmt, buffer, around)
    for indices in places:
        leading = indices[: len(around)]
        sizes = buffer.shape[: len(around)]
        same = leading == tuple(map(_own, around))
        whole = all(
            getattr(extent, "value", None) == size
            for (_, extent), size in zip(around, sizes, strict=False)
        )
        found.add(len(around) if same and whole else None)
    if not found:
        return 0
    return found.pop() if len(found) == 1 else None


def _of_warps(call: Invoke, buffer: Buffer, around: tuple[tuple[str, Expr], ...]) -> int | None:
    """As ``thread_dimensions``, of an intrinsic: after the loops around come its own threads, if
    it is of more than one.
    """
    lanes, count = lanes_of(call.intrinsic), len(around)
    whole = (*(int(getattr(extent, "value", 0)) for _, extent in around), *lanes)
    first = (*map(_own, around), *(as_index(0) for _ in lanes))
    for region in call.operands:
        if region.buffer == buffer and (
            region.start[: len(whole)] != first
            or buffer.shape[: len(whole)] != whole
            or region.shape[count : len(whole)] != lanes
            or any(size != 1 for size in region.shape[:count])
        ):
            return None
    return len(whole) or None


def _own(loop: tuple[str, Expr]) -> Expr:
    """The index that is the thread's: of a loop of one iteration, 0."""
    name, extent = loop
    return as_index(0) if extent == as_index(1) else Variable(name)
