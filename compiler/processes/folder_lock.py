"""Folders of results in which one process at a time is at work."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import CompilerError

__all__ = ["locked"]


@contextmanager
def locked(folder: Path, work: str, problem: type[CompilerError]) -> Iterator[None]:
    """Keep others that do such ``work`` out of ``folder``, until the end or this process's death.

    Raises ``problem`` when one is at work there, or nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("w")
    except OSError as error:
        raise problem(f"folder {folder} cannot be written: {error.strerror}") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise problem(
                f"another {work} is at work in {folder}; wait for it, or choose another folder"
            ) from None
        yield
