"""Writing a file whole, or leaving what was there."""

import contextlib
import os
import stat
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Content", "replace_file"]

Content = bytes | bytearray | memoryview

KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
"""Things other than files that a path can name, which are left alone."""


def replace_file(path: Path, parts: Sequence[Content], mode: int = 0o666) -> None:
    """Give the file at ``path`` the content ``parts``, one after the other, all of it or none.

    It is written next to it, flushed to the disk and moved there, so that neither another
    process nor the next start of the machine finds a part of it.  A symbolic link stays, and the
    file that it names is replaced.  A new file has the permissions ``mode``, less the umask; one
    that was there keeps its own.
    Raises OSError, also for a path that names something else than a file.
    """
    present = None
    with contextlib.suppress(FileNotFoundError):
        present = os.stat(path)
    if present and not stat.S_ISREG(present.st_mode):
        kind = KINDS[stat.S_IFMT(present.st_mode)]
        raise OSError(0, f"it is {kind}; required a file, or a name that is free")
    place = Path(os.path.realpath(path))
    beside = place.parent / f".{os.urandom(8).hex()}"
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(parts)
            file.flush()
            if present:
                os.fchmod(file.fileno(), stat.S_IMODE(present.st_mode))
            os.fsync(file.fileno())
        os.replace(beside, place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
