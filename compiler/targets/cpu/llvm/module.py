"""Compiled functions and programs, and calls of them on NumPy arrays."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from dovetail.runtime.errors import WorkLimitError as RunLimitError
from dovetail.runtime.native.image import Image, LoadedImage
from dovetail.runtime.native.pool import PoolCode, pool_address
from dovetail.runtime.native.program import NativeProgram, ProgramCode, workspace

from ....errors import GraphError, WorkLimitError
from ....loops.expressions import Buffer
from ....program.ir import Program
from .functions import Signature

__all__ = ["CompiledModule", "CompiledProgram"]

Array = np.ndarray


class CompiledModule:
    """Machine code of functions, by name."""

    def __init__(
        self, signatures: Mapping[str, Signature], image: Image, pool: PoolCode | None, threads: int
    ) -> None:
        self.signatures = dict(signatures)
        self.threads = threads
        self._image = LoadedImage(image)
        self._pool = pool
        self._calls = {
            name: ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (2 + _parameters(signature)))(
                self._image.address(signature.symbol)
            )
            for name, signature in signatures.items()
        }

    def address(self, name: str) -> int:
        """Address of the machine code of a function."""
        return self._image.address(self.signatures[name].symbol)

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
        results = _outputs(name, function.outputs, outputs)
        for buffer, array in zip(function.outputs, results, strict=True):
            if not array.flags.writeable:
                raise GraphError(f"{name}: output {buffer.name} is an array that is read only")
        size = signature.workspace_bytes
        owner, place = workspace(name, size) if size else (None, None)
        pointers = [array.ctypes.data for array in (*given, *results)]
        self._calls[name](pool_address(self._pool, self._image, self.threads), place, *pointers)
        del owner
        return results

    def calls(
        self, name: str, sets: Sequence[Sequence[Array]], outputs: Sequence[Array]
    ) -> list[Callable[[], None]]:
        """Calls of a function that are ready: one on each set of inputs, all with one workspace,
        writing ``outputs``.

        Raises as ``run``.
        """
        signature = self.signatures[name]
        function = signature.function
        results = _in_order(name, function.outputs, outputs)
        size = signature.workspace_bytes
        owner, place = workspace(name, size) if size else (None, None)
        pool = pool_address(self._pool, self._image, self.threads)
        call, kept = self._calls[name], (self, owner, results)

        def ready(inputs: Sequence[Array]) -> Callable[[], None]:
            given = _in_order(name, function.inputs, inputs)
            held = (*kept, given)
            pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*given, *results)]
            return partial(_call, held, call, (pool, place, *pointers))

        return [ready(inputs) for inputs in sets]


def _call(held: object, call: Callable[..., None], arguments: tuple[object, ...]) -> None:
    """held: what must live as long as the call."""
    call(*arguments)


class CompiledProgram:
    """Machine code of a program.  One call at a time uses its memory."""

    def __init__(self, program: Program, code: ProgramCode) -> None:
        """Raises WorkspaceError when there is no memory for it."""
        self.inputs, self.outputs = program.inputs, program.outputs
        self.memory_bytes = code.memory_bytes
        arrays = [np.asarray(array, order="C") for array in program.constants.values()]
        self._native = NativeProgram(code, arrays)

    def run(
        self,
        inputs: Mapping[str, Array] | Sequence[Array],
        outputs: Mapping[str, Array] | Sequence[Array] | None = None,
    ) -> list[Array]:
        """All calls; arrays by the names, or in the order, of the program's buffers.

        outputs: written in place; None makes new ones.  Raises GraphError for arrays of other
        shapes or dtypes, WorkLimitError when a loop does not end.
        """
        given = _in_order("program", self.inputs, inputs)
        results = _outputs("program", self.outputs, outputs)
        try:
            self._native.run(given, results)
        except RunLimitError as error:
            raise WorkLimitError(str(error)) from None
        return results


def _parameters(signature: Signature) -> int:
    return len(signature.function.inputs) + len(signature.function.outputs)


def _outputs(
    name: str, buffers: Sequence[Buffer], arrays: Mapping[str, Array] | Sequence[Array] | None
) -> list[Array]:
    if arrays is None:
        arrays = [np.empty(b.shape, b.dtype.numpy) for b in buffers]
    return _in_order(name, buffers, arrays)


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
