"""The threads that this process runs machine code on, which all modules share.

The code of the pool comes with the modules that need it.  Modules of one version of it share one
pool, which the first of them starts.
"""

import atexit
import ctypes
import os
import threading
from typing import NamedTuple

from .image import LoadedImage

__all__ = ["PoolCode", "pool_address"]


class PoolCode(NamedTuple):
    """Where an image has the pool's functions.

    start, stop: their symbols.  version: equal where code and layout are.  field_bytes,
    thread_bytes: of the pool's memory, for all threads and for each.
    """

    start: str
    stop: str
    version: str
    field_bytes: int
    thread_bytes: int


class _Pool:
    """Threads of this process, from their start to its end."""

    def __init__(self, code: PoolCode, image: LoadedImage, threads: int) -> None:
        self.image = image
        size = code.field_bytes + code.thread_bytes * threads
        self.memory = ctypes.create_string_buffer(size + 64)
        self.address = ctypes.addressof(self.memory) + -ctypes.addressof(self.memory) % 64
        start = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
        self.threads = int(start(image.address(code.start))(self.address, threads))
        self._stop = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(image.address(code.stop))

    def stop(self) -> None:
        """End the threads and wait for them; calls that are under way end on their caller's."""
        self._stop(self.address)


_running: dict[str, _Pool] = {}
"""By version: the pool that serves now."""
_retired: list[_Pool] = []
"""Pools that larger ones replaced: their threads have ended, but calls may still be under way."""
_starting = threading.Lock()


def pool_address(code: PoolCode | None, image: LoadedImage, threads: int) -> int | None:
    """The pool of at least ``threads`` threads, the caller among them; None for one thread."""
    if code is None or threads < 2:
        return None
    found = _running.get(code.version)
    if found is None or found.threads < threads:
        with _starting:
            found = _running.get(code.version)
            if found is not None and found.threads < threads:
                _retired.append(_running.pop(code.version))
                found.stop()
                found = None
            if found is None:
                found = _running[code.version] = _Pool(code, image, threads)
    return found.address


def _end() -> None:
    while _running:
        _running.popitem()[1].stop()


def _forget() -> None:
    """In a forked process, which has none of the threads."""
    global _starting
    _running.clear()
    _starting = threading.Lock()


atexit.register(_end)
os.register_at_fork(after_in_child=_forget)
