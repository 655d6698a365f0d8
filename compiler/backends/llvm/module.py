"""Compiled functions, and calls of them on NumPy arrays."""

import ctypes
import threading
from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import CompilerError, GraphError, WorkLimitError
from ...loops.expressions import Buffer
from .functions import Signature
from .jit import LoadedCode
from .pool import pool_address
from .program import ALIGNMENT, FIRST_STOP, Program

__all__ = ["CompiledModule", "CompiledProgram", "WorkspaceError"]

Array = np.ndarray


class WorkspaceError(CompilerError):
    """There is no memory for a function's workspace."""


class CompiledModule:
    """Machine code of functions, by name."""

    def __init__(
        self, signatures: Mapping[str, Signature], code: LoadedCode, threads: int = 1
    ) -> None:
        self.signatures = dict(signatures)
        self.threads = threads
        self._code = code
        self._calls = {
            name: ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (2 + _parameters(signature)))(
                code.address(signature.symbol)
            )
            for name, signature in signatures.items()
        }

    def address(self, name: str) -> int:
        """Of the machine code of a function."""
        return self._code.address(self.signatures[name].symbol)

    def run(
        self,
        name: str,
        inputs: Mapping[str, Array] | Sequence[Array],
        outputs: Mapping[str, Array] | Sequence[Array] | None = None,
    ) -> list[Array]:
        """Call a function; arrays by the names, or in the order, of its buffers.

        outputs: written in place; None makes new ones.  Returns them in the function's order.
        Raises GraphError for arrays of other shapes or dtypes, WorkspaceError for lack of memory.
        """
        signature = self.signatures[name]
        function = signature.function
        given = _in_order(name, function.inputs, inputs)
        if outputs is None:
            outputs = [np.empty(b.shape, b.dtype.numpy) for b in function.outputs]
        results = _in_order(name, function.outputs, outputs)
        for buffer, array in zip(function.outputs, results, strict=True):
            if not array.flags.writeable:
                raise GraphError(f"{name}: output {buffer.name} is an array that is read only")
        size = signature.workspace_bytes
        workspace = _workspace(name, size) if size else None
        place = None if workspace is None else workspace.ctypes.data
        pointers = [array.ctypes.data for array in (*given, *results)]
        self._calls[name](pool_address(self.threads), place, *pointers)
        return results


class CompiledProgram:
    """Machine code of a program.  One call at a time uses its memory."""

    def __init__(
        self, program: Program, code: LoadedCode, symbol: str, memory_bytes: int, threads: int
    ) -> None:
        """Raises WorkspaceError when there is no memory for it."""
        self.program = program
        self.memory_bytes = memory_bytes
        self._threads = threads
        self._code = code
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 5)
        self._main = kind(code.address(symbol))
        self._memory = _workspace("program", memory_bytes)
        self._memory_address = self._memory.ctypes.data
        self._constants = [np.ascontiguousarray(array) for array in program.constants.values()]
        self._constant_pointers = _pointers(self._constants)
        self._lock = threading.Lock()

    def run(
        self,
        inputs: Mapping[str, Array] | Sequence[Array],
        outputs: Mapping[str, Array] | Sequence[Array] | None = None,
    ) -> list[Array]:
        """All calls; arrays by the names, or in the order, of the program's buffers.

        outputs: written in place; None makes new ones.  Raises GraphError for arrays of other
        shapes or dtypes, WorkLimitError when a loop does not end.
        """
        given = _in_order("program", self.program.inputs, inputs)
        if outputs is None:
            outputs = [np.empty(b.shape, b.dtype.numpy) for b in self.program.outputs]
        results = _in_order("program", self.program.outputs, outputs)
        with self._lock:
            stop = self._main(
                pool_address(self._threads),
                self._memory_address,
                _pointers(given),
                _pointers(results),
                self._constant_pointers,
            )
        if stop:
            allowed = f"{self.program.most_work:.2g}"
            raise WorkLimitError(
                f"node {self.program.stops[stop - FIRST_STOP]!r}: its loop has not ended after "
                f"{allowed} reads and writes of elements, as many as are allowed; allow more "
                "(--most-work, DOVETAIL_MOST_WORK) or check its condition"
            )
        return results


def _pointers(arrays: Sequence[Array]) -> "ctypes.Array[ctypes.c_void_p]":
    return (ctypes.c_void_p * max(len(arrays), 1))(*[array.ctypes.data for array in arrays])


def _parameters(signature: Signature) -> int:
    return len(signature.function.inputs) + len(signature.function.outputs)


def _in_order(
    name: str, buffers: Sequence[Buffer], arrays: Mapping[str, Array] | Sequence[Array]
) -> list[Array]:
    if isinstance(arrays, Mapping):
        missing = [buffer.name for buffer in buffers if buffer.name not in arrays]
        if missing:
            raise GraphError(f"{name}: no array for {', '.join(missing)}")
        ordered = [np.asarray(arrays[buffer.name]) for buffer in buffers]
    else:
        ordered = [np.asarray(array) for array in arrays]
    if len(ordered) != len(buffers):
        raise GraphError(f"{name}: {len(ordered)} arrays; required {len(buffers)}")
    for buffer, array in zip(buffers, ordered, strict=True):
        if array.shape != buffer.shape or array.dtype != buffer.dtype.numpy:
            raise GraphError(
                f"{name}: {buffer.name} is {array.dtype}{list(array.shape)}; required "
                f"{buffer.dtype}{list(buffer.shape)}"
            )
        if not array.flags.c_contiguous:
            raise GraphError(
                f"{name}: {buffer.name} is not contiguous; pass numpy.ascontiguousarray of it"
            )
    return ordered


def _workspace(name: str, size: int) -> Array:
    """``size`` bytes from an aligned address on."""
    try:
        memory = np.empty(size + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError) as error:
        raise WorkspaceError(
            f"{name}: {size} bytes of workspace required; not available"
        ) from error
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]
