"""The thread pool as an object file, and where an image that it is linked into has it."""

import hashlib
from functools import cache

from dovetail.runtime.native.pool import PoolCode

from .optimize import Effort, to_object
from .pool_layout import FIELD_BYTES, THREAD_BYTES
from .pool_text import POOL_TEXT, START, STOP
from .target import CpuTarget

__all__ = ["POOL_SYMBOLS", "pool_code", "pool_object"]

POOL_SYMBOLS = (START, STOP)
"""What an image with a pool exports beside its own."""


def pool_code(threads: int) -> PoolCode | None:
    """What a program on as many threads needs; None for one thread."""
    if threads < 2:
        return None
    version = hashlib.sha256(POOL_TEXT.encode()).hexdigest()[:16]
    return PoolCode(START, STOP, version, FIELD_BYTES, THREAD_BYTES)


@cache
def pool_object() -> bytes:
    """For any x86-64 CPU."""
    return to_object(POOL_TEXT, CpuTarget.at_level("x86-64"), Effort.LIGHT)
