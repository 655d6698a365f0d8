"""Places of a block's shared buffers when they are more than a kernel may declare.

Then the launch gives the memory: all are in it one after the other.  Operands of products
of warpgroups always do, each from a multiple of 1024 bytes on, in swizzled rows of 128 bytes.
Source: CUDA C++ Programming Guide (NVIDIA), compute capability 9.x; ``warpgroups.py``.
"""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ...errors import GraphError
from ...loops.expressions import Buffer, Constant, Scope
from ...loops.ir import Allocate, For, Invoke, LoopKind, Stmt
from ...loops.traverse import bodies, walk
from .warpgroups import ATOM_BYTES, GROUP_PRODUCTS

__all__ = ["ALIGNED_BYTES", "SWIZZLED_ROWS", "Shared", "group_count", "group_sums", "shared_of"]

SWIZZLED_ROWS = 8
"""Rows after which the order of their pieces is the same again."""
DECLARED_BYTES = 48 << 10
"""Shared memory that a kernel may declare."""
ALIGNED_BYTES = SWIZZLED_ROWS * ATOM_BYTES
"""Where such rows may begin."""


@frozen
class Shared:
    """offsets: of buffers that the launch gives, in bytes from a multiple of ``ALIGNED_BYTES`` on.
    size: what a launch gives, enough to begin there; 0 for nothing.  swizzled: names of operands of
    products of warpgroups.
    """

    offsets: Mapping[str, int]
    size: int
    swizzled: frozenset[str]


def shared_of(body: Stmt) -> Shared:
    """The shared memory of a block of a kernel.

    Raises GraphError for operands of products of warpgroups that are not rows of 128 bytes.
    """
    calls = _products(body)
    shared = [
        stmt.buffer
        for stmt in walk(body)
        if isinstance(stmt, Allocate) and stmt.buffer.scope is Scope.SHARED
    ]
    if not calls and sum(each.elements * each.dtype.bytes for each in shared) <= DECLARED_BYTES:
        return Shared({}, 0, frozenset())
    swizzled = frozenset(part.buffer.name for call in calls for part in call.operands[:2])
    offsets, place = {}, 0
    for buffer in shared:
        if buffer.name in swizzled and buffer.shape[-1] * buffer.dtype.bytes != ATOM_BYTES:
            raise GraphError(
                f"{buffer.name}: rows of {buffer.shape[-1]} {buffer.dtype}; a warpgroup reads "
                f"rows of {ATOM_BYTES} bytes"
            )
        offsets[buffer.name] = place
        place += -(-buffer.elements * buffer.dtype.bytes // ALIGNED_BYTES) * ALIGNED_BYTES
    return Shared(offsets, place + ALIGNED_BYTES, swizzled)


def group_sums(body: Stmt) -> tuple[Buffer, ...]:
    """The arrays of a thread that products of warpgroups add to."""
    return tuple(
        {call.operands[2].buffer.name: call.operands[2].buffer for call in _products(body)}.values()
    )


def group_count(body: Stmt) -> int:
    """Number of products of warpgroups that are written; unrolled loops count each time."""
    match body:
        case Invoke(intrinsic=name):
            return int(name in GROUP_PRODUCTS)
        case For(kind=LoopKind.UNROLLED, extent=Constant(value=count), body=inner):
            return int(count) * group_count(inner)
        case _:
            return sum(map(group_count, bodies(body)))


def _products(body: Stmt) -> list[Invoke]:
    return [
        each for each in walk(body) if isinstance(each, Invoke) and each.intrinsic in GROUP_PRODUCTS
    ]
