"""Statements of a block outside of its threads: the first thread runs them.

for t in 64 thread: A;  B   ->   for t in 64 thread: A;  for single in 1 thread: B
"""

from itertools import count

from ...errors import GraphError
from ...loops.expressions import Buffer, Scope, as_index
from ...loops.intrinsic import BARRIER, WAIT, WAIT_BEFORE
from ...loops.ir import Allocate, Block, For, Invoke, LoopKind, Stmt, Store, Update, block
from ...loops.rewrite import with_bodies
from ...loops.traverse import bodies, loads, own_expressions, walk
from .distribute import thread_dimensions
from .tensor_cores import lanes_of

__all__ = ["require_own", "with_single_threads"]


def with_single_threads(body: Stmt) -> Stmt:
    """The statement with every write in a loop over threads; itself where there are none."""
    return _within(body, count()) if _has_threads(body) else body


def _has_threads(stmt: Stmt) -> bool:
    return any(isinstance(each, For) and each.kind is LoopKind.THREAD for each in walk(stmt))


def _is_shared(stmt: Stmt) -> bool:
    """True if all threads of the block take part in it."""
    waits = any(
        isinstance(each, Invoke) and each.intrinsic in (BARRIER, WAIT, WAIT_BEFORE)
        for each in walk(stmt)
    )
    return waits or _has_threads(stmt)


def _within(stmt: Stmt, numbers: "count[int]") -> Stmt:
    if isinstance(stmt, For) and stmt.kind is LoopKind.THREAD:
        return stmt
    if not _is_shared(stmt):
        name = f"single.{next(numbers)}"
        return For(name, as_index(1), LoopKind.THREAD, stmt)
    if isinstance(stmt, Invoke):
        return stmt
    if not isinstance(stmt, Block):
        return with_bodies(stmt, tuple(_within(each, numbers) for each in bodies(stmt)))
    found: list[Stmt] = []
    alone: list[Stmt] = []
    for each in stmt.statements:
        if _is_shared(each):
            found += [_within(block(*alone), numbers)] if alone else []
            found.append(_within(each, numbers))
            alone = []
        else:
            alone.append(each)
    found += [_within(block(*alone), numbers)] if alone else []
    return block(*found)


def require_own(stmt: Stmt, buffers: tuple[Buffer, ...] = ()) -> None:
    """Raise GraphError for an array of a block, not shared, that more than its first thread use.

    buffers: such arrays around.
    """
    used = {load.buffer for each in own_expressions(stmt) for load in loads(each)}
    if isinstance(stmt, For) and stmt.kind is LoopKind.THREAD:
        inner = [each for each in walk(stmt) if isinstance(each, For | Invoke)]
        if not any(_is_many(each) for each in inner):
            return
        for each in walk(stmt):
            used |= {load.buffer for expr in own_expressions(each) for load in loads(expr)}
            used |= {each.buffer} if isinstance(each, Store | Update) else set()
            used |= {part.buffer for part in each.operands} if isinstance(each, Invoke) else set()
    for buffer in buffers:
        if buffer in used:
            raise GraphError(
                f"{buffer.name}: threads of a block use an array of their block, which is "
                f"{buffer.scope}; required shared"
            )
    if isinstance(stmt, For) and stmt.kind is LoopKind.THREAD:
        return
    if isinstance(stmt, Allocate) and not _has_own_parts(stmt):
        buffers = (*buffers, stmt.buffer)
    for below in bodies(stmt):
        require_own(below, buffers)


def _is_many(stmt: For | Invoke) -> bool:
    """True if the kernel takes more than one thread."""
    if isinstance(stmt, Invoke):
        return bool(lanes_of(stmt.intrinsic))
    return stmt.kind is LoopKind.THREAD and stmt.extent != as_index(1)


def _has_own_parts(stmt: Allocate) -> bool:
    """True if the array is shared, or ``distributed`` makes it the threads' own."""
    scope = stmt.buffer.scope
    if scope is Scope.REGISTER:
        return bool(thread_dimensions(stmt.body, stmt.buffer, ()))
    return scope is Scope.SHARED
