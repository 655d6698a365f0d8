"""Whose code a module file holds: this user's own, or somebody else's.

What this user compiles is noted, by its digest, in the user's cache, which nobody else can write to
(``isa/cache.py``).  A file that is not noted came from elsewhere.
"""

import hashlib
from pathlib import Path

from dovetail.isa.cache import cache_directory, fetch, keep

from ..errors import ModuleError
from ..module import Module

__all__ = ["holds_code", "is_own", "note_own"]


def holds_code(module: Module) -> bool:
    """True if a part of it is machine code, which runs with all rights of the user."""
    return any(part.kind == "cpu" for part in module.parts)


def note_own(path: Path) -> None:
    """Note that this user made the file.  Raises ModuleError when it cannot be read."""
    keep(cache_directory(), _entry(path), b"")


def is_own(path: Path) -> bool:
    """True if this user made the file, as it is now.  Raises as ``note_own``."""
    return fetch(cache_directory(), _entry(path)) is not None


def _entry(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return f"made/{hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError as error:
        raise ModuleError(f"cannot read module {path}: {error.strerror}") from None
