"""The thread pool as an object file, and where an image that it is linked into has it."""

import hashlib

from dovetail.runtime.native.pool import PoolCode

from ..arch.arch import Arch
from .optimize import Effort, to_object
from .pool_layout import FIELD_BYTES, THREAD_BYTES
from .pool_text import START, STOP, pool_text
from .target import CpuTarget

__all__ = ["POOL_SYMBOLS", "pool_code", "pool_object"]

POOL_SYMBOLS = (START, STOP)
"""Symbols that an image with a pool exports besides its own."""


def pool_code(arch: Arch, threads: int) -> PoolCode | None:
    """Code of a pool for a program on so many threads; None for one thread."""
    if threads < 2:
        return None
    version = hashlib.sha256(pool_text(arch).encode()).hexdigest()[:16]
    return PoolCode(START, STOP, version, FIELD_BYTES, THREAD_BYTES)


def pool_object(arch: Arch) -> bytes:
    """For any CPU of a kind."""
    return to_object(pool_text(arch), CpuTarget.baseline(arch), Effort.LIGHT)
