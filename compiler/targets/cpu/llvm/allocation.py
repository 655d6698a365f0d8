"""Places of a function's buffers: on the stack, or in the workspace its caller provides."""

from ....dtypes import DType
from ....errors import GraphError
from ....loops.expressions import Buffer, Scope
from ...llvm.values import constant, memory_type
from .context import Context, Place

__all__ = ["allocated"]

_STACK_BUFFER_BYTES = 16 << 10
_STACK_BYTES = 64 << 10
_REGISTER_BYTES = 256 << 10
"""Bytes of stack for one buffer, for one function, and for one with buffers in registers: what is
larger lives in the workspace."""

_ALIGNMENT = 64


def allocated(context: Context, buffer: Buffer) -> Place:
    """A place for ``buffer``; in the workspace it is the caller's to give back.

    Raises GraphError for a buffer in a GPU's memory.
    """
    if buffer.scope is Scope.SHARED:
        raise GraphError(
            f"{context.function}: {buffer.name} is in memory shared by a GPU's threads; a CPU "
            "has global, local and register"
        )
    lanes = context.lanes
    size = buffer.elements * buffer.dtype.bytes * lanes
    most = _REGISTER_BYTES if buffer.scope is Scope.REGISTER else _STACK_BYTES
    small = size <= _STACK_BUFFER_BYTES or buffer.scope is Scope.REGISTER
    if small and context.stack_bytes + size <= most:
        context.stack_bytes += size
        alignment = min(_ALIGNMENT, max(size & -size, 1))
        kind = memory_type(buffer.dtype)
        return Place(buffer, context.e.slot(buffer.elements * lanes, kind, alignment), lanes)
    offset = constant(context.workspace_used, DType.INT64)
    text = f"getelementptr inbounds i8, ptr {context.workspace}, {offset.typed}"
    pointer = context.e.op(text, DType.INT64).ref
    context.workspace_used += -(-size // _ALIGNMENT) * _ALIGNMENT
    context.workspace_bytes = max(context.workspace_bytes, context.workspace_used)
    return Place(buffer, pointer, lanes)
