"""Files of modules: read and checked by several threads at a time, written whole or not at all."""

import bisect
import itertools
import mmap
import os
import threading
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from dovetail.isa.files import Content, replace_file

from .errors import ModuleError

__all__ = ["DIGEST_BYTES", "digest", "read_file", "write_whole"]

DIGEST_BYTES = 4
CHUNK_BYTES = 1 << 20
"""Bytes that are summed separately."""
HUGE_BYTES = 4 << 20
"""Files that are worth large pages, and threads."""
THREADS = 4


def digest(*parts: Content) -> bytes:
    """The CRC-32 of the CRC-32 of each ``CHUNK_BYTES`` of ``parts``, one after the other.

    It tells damage, in less time than reading takes; it does not prove who wrote the content.
    """
    views = [memoryview(each) for each in parts]
    starts = [0, *itertools.accumulate(map(len, views))]

    def part(start: int, end: int) -> Content:
        first = bisect.bisect_right(starts, start) - 1
        if end <= starts[first + 1]:
            return views[first][start - starts[first] : end - starts[first]]
        places = zip(starts[first:], views[first:], strict=False)
        return b"".join(view[max(start - at, 0) : max(end - at, 0)] for at, view in places)

    return _digest(starts[-1], part)


def read_file(path: Path) -> tuple[memoryview, bytes]:
    """The content of a file, and the digest of all but its last ``DIGEST_BYTES``.

    It begins at an address of a page, and is in large pages if it is long.  Raises OSError.
    """
    with path.open("rb", buffering=0) as file:
        handle = file.fileno()
        size = os.fstat(handle).st_size
        if size <= DIGEST_BYTES:
            return memoryview(file.read()), b""
        memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if size >= HUGE_BYTES:
            memory.madvise(mmap.MADV_HUGEPAGE)
        view = memoryview(memory)

        def filled(start: int, end: int) -> memoryview:
            part = view[start:end]
            place = 0
            while place < len(part):
                count = os.preadv(handle, [part[place:]], start + place)
                if not count:
                    raise OSError(0, f"it has {start + place} bytes, not {size}")
                place += count
            return part

        filled(size - DIGEST_BYTES, size)
        return view, _digest(size - DIGEST_BYTES, filled)


def _digest(size: int, part: Callable[[int, int], Content]) -> bytes:
    """The digest of ``size`` bytes, which ``part`` gives from a start to an end, in any order."""
    count = -(-size // CHUNK_BYTES)
    found = [b""] * count
    problems: list[OSError] = []
    numbers = itertools.count()

    def work() -> None:
        try:
            while (number := next(numbers)) < count:
                start = number * CHUNK_BYTES
                chunk = part(start, min(start + CHUNK_BYTES, size))
                found[number] = zlib.crc32(chunk).to_bytes(4, "little")
        except OSError as error:
            problems.append(error)

    others = min(THREADS, len(os.sched_getaffinity(0))) - 1 if size >= HUGE_BYTES else 0
    threads = [threading.Thread(target=work) for _ in range(others)]
    for thread in threads:
        thread.start()
    work()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return zlib.crc32(b"".join(found)).to_bytes(DIGEST_BYTES, "little")


def write_whole(
    path: Path, data: Content | Sequence[Content], *, make_folder: bool = False
) -> None:
    """Write ``data``, or its parts, to ``path``: it then has all of it, or is as it was.

    make_folder: whether its folder is made if it is not there.
    Raises ModuleError when the folder cannot be written, or ``path`` is a device or the like.
    """
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, [data] if isinstance(data, Content) else data)
    except OSError as error:
        raise ModuleError(f"cannot write {path}: {error.strerror}") from None
