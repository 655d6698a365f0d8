"""The thread pool that runs in this process, which all modules share."""

import atexit
import ctypes
import os
from functools import cache

from .jit import LoadedCode
from .optimize import Effort, to_object
from .pool_text import FIELD_BYTES, POOL_TEXT, RUN, START, STOP, THREAD_BYTES
from .target import CpuTarget

__all__ = ["pool_address", "run_address"]


class _Pool:
    """Threads of this process, from their start to its end."""

    def __init__(self, threads: int) -> None:
        self.memory = ctypes.create_string_buffer(FIELD_BYTES + THREAD_BYTES * threads + 64)
        self.address = ctypes.addressof(self.memory) + -ctypes.addressof(self.memory) % 64
        start = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
        self.threads = int(start(_code().address(START))(self.address, threads))

    def stop(self) -> None:
        """End the threads and wait for them."""
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_code().address(STOP))(self.address)


_running: list[_Pool] = []
"""The pool that serves now, at most one; those it replaced have ended."""


def pool_address(threads: int) -> int | None:
    """The pool of at least ``threads`` threads, the caller among them; None for one thread."""
    if threads < 2:
        return None
    if _running and _running[0].threads < threads:
        _running.pop().stop()
    if not _running:
        _running.append(_Pool(threads))
    return _running[0].address


def run_address() -> int:
    """Of ``dovetail_pool_run`` in this process."""
    return _code().address(RUN)


@cache
def _code() -> LoadedCode:
    target = CpuTarget.at_level("x86-64")
    return LoadedCode([to_object(POOL_TEXT, target, Effort.LIGHT)], [RUN, START, STOP])


def _end() -> None:
    while _running:
        _running.pop().stop()


atexit.register(_end)
os.register_at_fork(after_in_child=_running.clear)
