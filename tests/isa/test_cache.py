"""Files kept between processes: found again, private, never trusted when damaged."""

import os
import stat
import threading
from pathlib import Path

import pytest

from dovetail.isa import cache
from dovetail.isa.cache import CacheError

CONTENT = bytes(range(256)) * 8


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_entry_is_found_again_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    assert cache.fetch(tmp_path, "native/a.o") is None
    cache.keep(tmp_path, "native/a.o", CONTENT)
    assert cache.fetch(tmp_path, "native/a.o") == CONTENT
    assert (mode(tmp_path / "native"), mode(tmp_path / "native" / "a.o")) == (0o700, 0o600)
    assert os.listdir(tmp_path / "native") == ["a.o"]


def test_a_damaged_entry_is_absent(tmp_path: Path) -> None:
    cache.keep(tmp_path, "a", CONTENT)
    whole = (tmp_path / "a").read_bytes()
    damaged = [whole[:end] for end in (0, 31, 32, 33, len(whole) - 1)]
    for place in (0, 31, 32, len(whole) // 2, len(whole) - 1):
        damaged.append(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
    damaged += [whole + b"\0", bytes(len(whole))]
    for data in damaged:
        (tmp_path / "a").write_bytes(data)
        assert cache.fetch(tmp_path, "a") is None
    cache.keep(tmp_path, "a", CONTENT)
    assert cache.fetch(tmp_path, "a") == CONTENT


def test_an_entry_under_another_name_is_absent(tmp_path: Path) -> None:
    cache.keep(tmp_path, "a", CONTENT)
    (tmp_path / "a").rename(tmp_path / "b")
    assert cache.fetch(tmp_path, "b") is None


def test_what_others_can_write_or_own_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        cache.keep(tmp_path, name, CONTENT)
    (tmp_path / "a").chmod(0o620)
    assert cache.fetch(tmp_path, "a") is None
    (tmp_path / "a").chmod(0o600)
    assert cache.fetch(tmp_path, "a") == CONTENT
    (tmp_path / "a").unlink()
    (tmp_path / "a").symlink_to("b")
    os.mkfifo(tmp_path / "pipe")
    assert cache.fetch(tmp_path, "a") is cache.fetch(tmp_path, "pipe") is None
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert cache.fetch(tmp_path, "b") is None


def test_a_tools_file_is_used_only_as_it_was_left(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.write_bytes(CONTENT)
    assert not cache.has_whole(tmp_path, "build/program")
    cache.keep_file(tmp_path, "build/program", made)
    assert cache.has_whole(tmp_path, "build/program")
    program = tmp_path / "build" / "program"
    assert program.read_bytes() == CONTENT
    program.write_bytes(CONTENT[:-1])
    assert not cache.has_whole(tmp_path, "build/program")
    program.write_bytes(CONTENT)
    assert cache.has_whole(tmp_path, "build/program")
    program.with_name("program.digest").write_bytes(b"")
    assert not cache.has_whole(tmp_path, "build/program")


def test_writers_at_once_leave_a_whole_entry(tmp_path: Path) -> None:
    contents = [bytes([number]) * 50_000 for number in range(8)]
    found = []

    def work(content: bytes) -> None:
        for _ in range(10):
            cache.keep(tmp_path, "a", content)
            found.append(cache.fetch(tmp_path, "a"))

    threads = [threading.Thread(target=work, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert set(found) <= set(contents)


def test_the_folder_is_made_for_the_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path / "some" / "cache"))
    assert mode(cache.cache_directory()) == 0o700


def test_the_usual_folder_is_closed_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOVETAIL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "dovetail").mkdir()
    (tmp_path / "dovetail").chmod(0o775)
    assert mode(cache.cache_directory()) == 0o700


def test_a_folder_of_others_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path))
    tmp_path.chmod(0o1777)
    with pytest.raises(CacheError, match=r"others can write to the cache .*; chmod 700"):
        cache.cache_directory()
    tmp_path.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(CacheError, match=r"belongs to user .* set DOVETAIL_CACHE to one"):
        cache.cache_directory()


def test_where_no_folder_can_be_made_none_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path / "file" / "cache"))
    folder = cache.cache_directory()
    cache.keep(folder, "a", CONTENT)
    assert cache.fetch(folder, "a") is None
