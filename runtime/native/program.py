"""Machine code of a whole program, and calls of it on NumPy arrays."""

import ctypes
import mmap
import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ..errors import ModuleError, WorkLimitError, WorkspaceError
from .image import Image, LoadedImage
from .pool import PoolCode, pool_address

__all__ = ["ALIGNMENT", "FIRST_STOP", "NativeProgram", "ProgramCode", "workspace"]

ALIGNMENT = 64
"""Alignment of constants and of the memory of a call, in bytes."""
FIRST_STOP = 2
"""Return value of ``main`` when the first loop that may stop it does so."""
HUGE_BYTES = 4 << 20
"""Memory that is worth large pages."""

Array = NDArray[Any]


@frozen
class ProgramCode:
    """Machine code of a program that is not loaded yet.

    main: the symbol of ``int32 main(pool, memory, inputs, outputs, constants)``.  memory_bytes:
    that a call needs.  stops: the nodes whose loops end a run that has done ``most_work``.
    """

    image: Image
    main: str
    memory_bytes: int
    threads: int
    pool: PoolCode | None
    most_work: int
    stops: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raises ModuleError for symbols that do not exist, and sizes below 0."""
        self.image.check()
        pool = self.pool
        names = (self.main,) if pool is None else (self.main, pool.start, pool.stop)
        for name in names:
            if name not in self.image.symbols:
                raise ModuleError(f"machine code without its symbol {name!r}")
        sizes = (self.memory_bytes, self.threads - 1, self.most_work)
        if min(sizes if pool is None else (*sizes, pool.field_bytes, pool.thread_bytes)) < 0:
            raise ModuleError(f"machine code for {self.threads} threads and {sizes[0]} bytes")


class NativeProgram:
    """A program in this process.  One call at a time uses its memory."""

    def __init__(self, code: ProgramCode, constants: Sequence[Array]) -> None:
        """constants: contiguous; kept, not copied.

        Raises WorkspaceError when there is no memory for it, ModuleError as ``LoadedImage``.
        """
        self.code = code
        self._image = LoadedImage(code.image)
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 5)
        self._main = kind(self._image.address(code.main))
        self._memory, self._memory_address = workspace("program", code.memory_bytes)
        self.constants = list(constants)
        self._constant_pointers = _pointers(self.constants)
        self._lock = threading.Lock()
        _programs.add(self)

    def run(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """One call; the arrays are contiguous and of the program's types, in its order.

        Raises WorkLimitError when a loop does not end.
        """
        with self._lock:
            stop = self._main(
                pool_address(self.code.pool, self._image, self.code.threads),
                self._memory_address,
                _pointers(inputs),
                _pointers(outputs),
                self._constant_pointers,
            )
        if stop:
            raise WorkLimitError(
                f"node {self.code.stops[stop - FIRST_STOP]!r}: its loop has not ended after "
                f"{self.code.most_work:.2g} reads and writes of elements, as many as are allowed; "
                "allow more (--most-work, DOVETAIL_MOST_WORK) or check its condition"
            )

    def last_words(self, count: int) -> NDArray[Any]:
        """The last int64 of its memory, as they are: int64[count]."""
        start = self._memory_address + self.code.memory_bytes - 8 * count
        return np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(start))


_programs: weakref.WeakSet[NativeProgram] = weakref.WeakSet()
"""All programs of this process."""


def _forget_calls() -> None:
    """In a forked process, which has none of the threads whose calls were under way."""
    for program in _programs:
        program._lock = threading.Lock()


os.register_at_fork(after_in_child=_forget_calls)


def workspace(name: str, size: int) -> tuple[object, int]:
    """``size`` bytes: what owns them, and their aligned address.

    Raises WorkspaceError when there is no memory for them.
    """
    try:
        memory = mmap.mmap(-1, max(size, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, ValueError, OverflowError) as error:
        raise WorkspaceError(
            f"{name}: {size} bytes of workspace required; not available"
        ) from error
    if size >= HUGE_BYTES:
        memory.madvise(mmap.MADV_HUGEPAGE)
    first = ctypes.c_char.from_buffer(memory)
    return first, ctypes.addressof(first)


def _pointers(arrays: Sequence[Array]) -> "ctypes.Array[ctypes.c_void_p]":
    return (ctypes.c_void_p * max(len(arrays), 1))(*[array.ctypes.data for array in arrays])
