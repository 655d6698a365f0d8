"""Digests and reading of files: whatever the length and the threads, and files that change."""

import os
import zlib
from pathlib import Path

import numpy as np
import pytest

from dovetail.runtime import files
from dovetail.runtime.files import CHUNK_BYTES, DIGEST_BYTES, digest, read_file

SIZES = (0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 9 * CHUNK_BYTES + 17)


def content(size: int) -> bytes:
    return np.random.default_rng(size).bytes(size)


@pytest.mark.parametrize("size", SIZES)
def test_a_digest_is_that_of_the_chunks_digests(size: int, tmp_path: Path) -> None:
    data = content(size)
    parts = [data[start : start + CHUNK_BYTES] for start in range(0, size, CHUNK_BYTES)]
    sums = b"".join(zlib.crc32(part).to_bytes(4, "little") for part in parts)
    expected = zlib.crc32(sums).to_bytes(4, "little")
    assert digest(data) == expected
    (tmp_path / "file").write_bytes(data + bytes(DIGEST_BYTES))
    read, found = read_file(tmp_path / "file")
    assert read == data + bytes(DIGEST_BYTES)
    assert found == expected or not size


def test_every_changed_byte_changes_the_digest() -> None:
    data = bytearray(content(6 * CHUNK_BYTES))
    before = digest(data)
    for place in (0, CHUNK_BYTES, 3 * CHUNK_BYTES - 1, 6 * CHUNK_BYTES - 1):
        data[place] ^= 1
        assert digest(data) != before
        data[place] ^= 1
    assert digest(data) == before


def test_a_file_that_ends_while_it_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_bytes(content(6 * CHUNK_BYTES))
    monkeypatch.setattr(files.os, "preadv", lambda handle, parts, start: 0)
    with pytest.raises(OSError, match="bytes, not"):
        read_file(tmp_path / "file")


def test_no_threads_are_started_for_small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.threading, "Thread", None)
    assert len(digest(content(2 * CHUNK_BYTES))) == DIGEST_BYTES
    assert os.cpu_count()
