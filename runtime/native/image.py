"""Linked machine code for x86-64 that can be at any address.

An image begins with a table of 8 bytes for each function of the C library that it calls; whoever
loads it writes their addresses there.  All else in it is code and constants, never written.
"""

import ctypes
import mmap
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from ..errors import ModuleError

__all__ = ["IMPORT_BYTES", "Image", "LoadedImage"]

IMPORT_BYTES = 8


class Image(NamedTuple):
    """symbols: offsets in ``code``.  imports: functions of the C library, in the table's order."""

    code: bytes | memoryview
    symbols: Mapping[str, int]
    imports: tuple[str, ...] = ()

    def check(self) -> None:
        """Raises ModuleError for symbols and imports outside the code."""
        size = len(self.code)
        for name, offset in self.symbols.items():
            if not 0 <= offset < size:
                raise ModuleError(f"symbol {name!r} at {offset} of {size} bytes of machine code")
        if IMPORT_BYTES * len(self.imports) > size:
            raise ModuleError(f"{len(self.imports)} imports in {size} bytes of machine code")


class LoadedImage:
    """An image in this process, until the last reference to this goes."""

    def __init__(self, image: Image) -> None:
        """Raises ModuleError for a function that the C library does not have, and when the system
        does not let memory become code.
        """
        size = len(image.code)
        self._symbols = dict(image.symbols)
        self._memory = mmap.mmap(-1, max(size, 1), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._memory[:size] = image.code
        for number, name in enumerate(image.imports):
            place = IMPORT_BYTES * number
            address = _c_function(name)
            self._memory[place : place + IMPORT_BYTES] = address.to_bytes(IMPORT_BYTES, "little")
        self._start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        length = -(-max(size, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        if _libc().mprotect(ctypes.c_void_p(self._start), length, mmap.PROT_READ | mmap.PROT_EXEC):
            problem = ctypes.get_errno()
            raise ModuleError(
                f"{size} bytes of machine code: the system does not let them be run (error "
                f"{problem}); allow executable memory to this process"
            )

    def address(self, symbol: str) -> int:
        """Address of a symbol.  Raises KeyError when there is none of this name."""
        return self._start + self._symbols[symbol]


def _c_function(name: str) -> int:
    try:
        function = getattr(_libc(), name)
    except AttributeError:
        raise ModuleError(f"machine code calls {name}, which the C library lacks") from None
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
