"""A cache that outlives processes, in a folder of the user's own; entries are checked before use.

Machine code and simulators are among it: whoever could write to the folder could run code as its
user.  So the folder is the user's alone, and so is every entry that is read.  An entry begins with
a digest of its name and content; one that does not fit is taken for absent, and made again.
"""

import contextlib
import hashlib
import os
import stat
from pathlib import Path

from .errors import DovetailError
from .files import replace_file

__all__ = ["CacheError", "cache_directory", "fetch", "has_whole", "keep", "keep_file", "make_own"]

DIGEST_BYTES = 32
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class CacheError(DovetailError):
    """The folder for what is kept between processes is not the user's own."""


def cache_directory() -> Path:
    """``DOVETAIL_CACHE``, or a folder in the user's cache folder; made if it is not there.

    It need not exist afterwards: where none can be made, none is used.
    Raises CacheError when it is not the user's own, or others can write to it.
    """
    chosen = os.environ.get("DOVETAIL_CACHE")
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dovetail"
    folder = Path(chosen) if chosen else usual
    try:
        make_own(folder)
        found = folder.stat()
    except OSError:
        return folder
    if found.st_uid != os.geteuid():
        raise CacheError(
            f"the cache {folder} belongs to user {found.st_uid}; required a folder of your own "
            f"(user {os.geteuid()}), as code from it is run; set DOVETAIL_CACHE to one"
        )
    if found.st_mode & OTHERS_WRITE:
        if chosen:
            raise CacheError(
                f"others can write to the cache {folder}, and code from it is run; "
                f"chmod 700 {folder}, or set DOVETAIL_CACHE to another folder"
            )
        folder.chmod(0o700)
    return folder


def make_own(folder: Path) -> None:
    """Make a folder for the user alone, unless it is there; those above it if need be.

    Raises OSError.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def fetch(folder: Path, name: str) -> bytes | None:
    """The content of the entry ``name``; None if there is none, or not a whole one of the user's.

    name: of the file in ``folder``, with slashes for folders in it.
    """
    try:
        data = _read_own(folder / name)
    except OSError:
        return None
    content = data[DIGEST_BYTES:]
    return content if data[:DIGEST_BYTES] == _digest(name, content) else None


def keep(folder: Path, name: str, content: bytes) -> None:
    """Write the entry ``name``; a folder that cannot be written to is left as it is."""
    place = folder / name
    with contextlib.suppress(OSError):
        make_own(place.parent)
        replace_file(place, [_digest(name, content), content], 0o600)


def has_whole(folder: Path, name: str) -> bool:
    """True if the file ``name``, which is used by its path, is as ``keep_file`` left it."""
    try:
        found = _digest(name, _read_own(folder / name))
    except OSError:
        return False
    return fetch(folder, _seal(name)) == found


def keep_file(folder: Path, name: str, made: Path) -> None:
    """Move the file ``made`` to ``name``, both on one disk.  Raises OSError."""
    place = folder / name
    make_own(place.parent)
    with made.open("rb") as file:
        digest = _digest(name, file.read())
        os.fsync(file.fileno())
    made.replace(place)
    keep(folder, _seal(name), digest)


def _seal(name: str) -> str:
    """The entry with the digest of a file that is used by its path."""
    return f"{name}.digest"


def _read_own(path: Path) -> bytes:
    """Raises OSError for what is not a file of the user's that only he can write."""
    with open(path, "rb", opener=_open_file) as file:
        found = os.fstat(file.fileno())
        own = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not own or found.st_mode & OTHERS_WRITE:
            raise OSError(0, "not a file of the user's own")
        return file.read()


def _open_file(path: str, flags: int) -> int:
    """Open without following a link, or waiting for what may be a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _digest(name: str, content: bytes) -> bytes:
    """The digest of an entry; it covers the name, so that no entry passes for another."""
    digest = hashlib.sha256(name.encode() + b"\0")
    digest.update(content)
    return digest.digest()
