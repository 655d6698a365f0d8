"""Kernels of a function: what a GPU runs at a time, and the blocks and threads that it takes.

Blocks of threads cannot wait for each other.  Each nest at the top of a function therefore becomes
a kernel of its own, and what one kernel leaves for another is in a workspace.  Statements without
blocks and threads run on one thread, as many together as follow each other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from math import prod

from dovetail.isa.frozen import frozen

from ...errors import GraphError
from ...loops.barriers import barrier_conflict
from ...loops.expressions import Buffer, Constant, Scope
from ...loops.ir import Allocate, Block, For, Function, Invoke, Let, LoopKind, Stmt, block
from ...loops.rewrite import with_bodies
from ...loops.traverse import bodies, loads, walk, written
from ...program.memory import aligned
from .distribute import distributed
from .shared import Shared, shared_of
from .single import require_own, with_single_threads
from .tensor_cores import HOPPER, lanes_of

__all__ = ["Axis", "Geometry", "Kernel", "Parameter", "kernels_of", "workspace_bytes"]

PRIVATE_BYTES = 1 << 10
"""The largest buffer in the private memory of one of many threads; ..."""
SINGLE_BYTES = 1 << 14
"""... of a thread that is alone."""
BOUND = (LoopKind.BLOCK, LoopKind.THREAD)


@frozen
class Axis:
    """A bound loop: its variable is ``number // stride % extent``, of the block or thread.

    total: of the extents of all loops around it and in it of its kind; higher numbers do nothing.
    """

    stride: int
    extent: int
    total: int


@frozen
class Geometry:
    """Numbers of blocks, and of threads in each, and the bound loops by variable."""

    blocks: int
    threads: int
    axes: Mapping[str, Axis]


@frozen
class Parameter:
    """A buffer that a kernel is given.

    offset: in the function's workspace, in bytes; None for a buffer of the function itself.
    private: every thread has an array of its own there, one after the other.  alignment: bytes
    that divide where it begins.
    """

    buffer: Buffer
    offset: int | None = None
    private: bool = False
    alignment: int = 1


@frozen
class Kernel:
    """``body``, on as many blocks and threads as ``geometry`` says.

    shared: the memory of a block that its launch gives.
    """

    parameters: tuple[Parameter, ...]
    body: Stmt
    geometry: Geometry
    shared: Shared


@frozen
class _Piece:
    """Statements for one kernel; bound: they have blocks or threads."""

    body: Stmt
    bound: bool


@frozen
class _Known:
    """A function, which is equal to those of the same body: comparing what is in it takes long."""

    function: Function

    def __hash__(self) -> int:
        return id(self.function.body)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Known):
            return False
        one, two = self.function, other.function
        return one.body is two.body and (one.inputs, one.outputs) == (two.inputs, two.outputs)


def kernels_of(function: Function) -> tuple[Kernel, ...]:
    """The kernels of a function, in the order in which they run.

    Raises GraphError for bound loops where a GPU has none: in a loop of another kind, for instance.
    """
    return _kernels_of(_Known(function))


@lru_cache(maxsize=256)
def _kernels_of(known: _Known) -> tuple[Kernel, ...]:
    function = known.function
    handed: list[Buffer] = []
    pieces = _pieces(function, function.body, handed)
    places: dict[str, Parameter] = {}
    own = (*function.inputs, *function.outputs)
    offset = 0
    kernels = []
    for buffer in handed:
        places[buffer.name] = Parameter(buffer, offset)
        offset += aligned(buffer.elements * buffer.dtype.bytes)
    for piece in pieces:
        whole = with_single_threads(piece.body)
        shape = _geometry(function, whole)
        threads = shape.blocks * shape.threads
        if shape.threads > 1:
            conflict = barrier_conflict(whole, HOPPER)
            if conflict is not None:
                raise GraphError(f"{function.name}: {conflict}")
            require_own(whole)
            whole = distributed(whole)
        spilled: dict[str, Parameter] = {}
        for stmt in walk(whole):
            if isinstance(stmt, Allocate) and _is_large(stmt.buffer, threads):
                size = stmt.buffer.elements * stmt.buffer.dtype.bytes * threads
                spilled[stmt.buffer.name] = Parameter(stmt.buffer, offset, threads > 1)
                offset += aligned(size)
        body = _without(whole, spilled)
        used = written(body) | {each.buffer.name for each in loads(body)}
        parameters = [Parameter(each) for each in own if each.name in used]
        parameters += [each for name, each in {**places, **spilled}.items() if name in used]
        kernels.append(Kernel(tuple(parameters), body, shape, shared_of(body)))
    return tuple(kernels)


def workspace_bytes(kernels: Iterable[Kernel]) -> int:
    """The size of what the kernels of a function hand on, and of what fits no thread's memory."""
    ends = [0]
    for kernel in kernels:
        threads = kernel.geometry.blocks * kernel.geometry.threads
        for each in kernel.parameters:
            if each.offset is not None:
                size = each.buffer.elements * each.buffer.dtype.bytes
                ends.append(each.offset + aligned(size * (threads if each.private else 1)))
    return max(ends)


def _is_large(buffer: Buffer, threads: int) -> bool:
    limit = PRIVATE_BYTES if threads > 1 else SINGLE_BYTES
    return buffer.scope is not Scope.SHARED and buffer.elements * buffer.dtype.bytes > limit


def _without(stmt: Stmt, buffers: Mapping[str, object]) -> Stmt:
    """``stmt`` with what allocated ``buffers`` left out."""
    below = tuple(_without(each, buffers) for each in bodies(stmt))
    match stmt:
        case Allocate(buffer=buffer) if buffer.name in buffers:
            return below[0]
        case _:
            return with_bodies(stmt, below)


def _pieces(function: Function, stmt: Stmt, handed: list[Buffer]) -> list[_Piece]:
    """The statement in pieces; handed: gets the buffers that several of them use."""
    if _is_one_block(stmt):
        return [_Piece(stmt, True)]
    match stmt:
        case Block(statements=statements):
            found = [each for inner in statements for each in _pieces(function, inner, handed)]
            return _merged(found)
        case Allocate(buffer=buffer, body=body):
            inner = _pieces(function, body, handed)
            if any(each.bound for each in inner):
                handed.append(buffer)
                return inner
            return [_Piece(Allocate(buffer, each.body), False) for each in inner]
        case Let(value=value, body=body):
            inner = _pieces(function, body, handed)
            changed = {each.buffer.name for each in loads(value)} & written(body)
            if any(each.bound for each in inner) and changed:
                raise GraphError(
                    f"{function.name}: {stmt.variable.name} names what {min(changed)} holds before "
                    "blocks of threads write it; name it inside them"
                )
            return [_Piece(replace(stmt, body=each.body), each.bound) for each in inner]
        case _:
            bound = any(isinstance(each, For) and each.kind in BOUND for each in walk(stmt))
            return [_Piece(stmt, bound)]


def _is_one_block(stmt: Stmt) -> bool:
    """True if a statement allocates shared memory, but has no loop over blocks."""
    every = list(walk(stmt))
    if any(isinstance(each, For) and each.kind is LoopKind.BLOCK for each in every):
        return False
    return any(isinstance(each, Allocate) and each.buffer.scope is Scope.SHARED for each in every)


def _merged(pieces: list[_Piece]) -> list[_Piece]:
    """Neighbours without blocks and threads as one."""
    found: list[_Piece] = []
    for each in pieces:
        if found and not each.bound and not found[-1].bound:
            found[-1] = _Piece(block(found[-1].body, each.body), False)
        else:
            found.append(each)
    return found


def _geometry(function: Function, body: Stmt) -> Geometry:
    totals = {kind: _total(function, body, kind) for kind in BOUND}
    axes: dict[str, Axis] = {}
    _bind(function, body, axes, dict.fromkeys(BOUND, 0))
    return Geometry(totals[LoopKind.BLOCK], totals[LoopKind.THREAD], axes)


def _total(function: Function, stmt: Stmt, kind: LoopKind) -> int:
    """The number of blocks or threads that the loops in ``stmt`` need; 0 for an empty nest."""
    if isinstance(stmt, Invoke) and kind is LoopKind.THREAD:
        return prod(lanes_of(stmt.intrinsic))
    inner = [_total(function, each, kind) for each in bodies(stmt)]
    most = max(inner, default=1)
    if not isinstance(stmt, For) or stmt.kind is not kind:
        return most
    return _extent(function, stmt) * most


def _extent(function: Function, loop: For) -> int:
    if not isinstance(loop.extent, Constant):
        raise GraphError(
            f"{function.name}: the {loop.kind} loop {loop.variable} has no constant extent"
        )
    return int(loop.extent.value)


def _bind(
    function: Function, stmt: Stmt, axes: dict[str, Axis], totals: dict[LoopKind, int]
) -> None:
    """Give each bound loop its axis; totals: of the loops around, 0 for none."""
    if isinstance(stmt, For) and stmt.kind in BOUND:
        stride = _total(function, stmt.body, stmt.kind)
        extent = _extent(function, stmt)
        total = totals[stmt.kind] or stride * extent
        if stmt.kind is LoopKind.BLOCK and totals[LoopKind.THREAD]:
            raise GraphError(f"{function.name}: blocks of {stmt.variable} inside of threads")
        axes[stmt.variable] = Axis(stride, extent, total)
        totals = {**totals, stmt.kind: total}
    elif isinstance(stmt, For) and any(
        isinstance(each, For) and each.kind is LoopKind.BLOCK for each in walk(stmt.body)
    ):
        raise GraphError(f"{function.name}: blocks inside of the {stmt.kind} loop {stmt.variable}")
    for each in bodies(stmt):
        _bind(function, each, axes, totals)
