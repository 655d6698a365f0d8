"""Files are written whole, and nothing but files."""

import os
import socket
import stat
from pathlib import Path

import pytest

from dovetail.isa.files import replace_file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_link_stays_and_what_it_names_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "file", tmp_path / "link"
    link.symlink_to("folder/file")
    for content in (b"made", b"replaced"):
        replace_file(link, [content[:2], content[2:]])
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert os.listdir(target.parent) == ["file"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("terminal", "a device"), ("pipe", "a pipe"), ("socket", "a socket"), ("folder", "a folder")],
)
@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_file_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str, linked: bool
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    ends = os.openpty()
    path = tmp_path / name if name != "terminal" else Path(os.ttyname(ends[1]))
    if linked:
        (tmp_path / "link").symlink_to(path)
        path = tmp_path / "link"
    before = sorted(os.listdir(tmp_path)), os.stat(path)
    with pytest.raises(OSError, match=f"it is {kind}; required a file, or a name that is free"):
        replace_file(path, [b"content"])
    after = sorted(os.listdir(tmp_path)), os.stat(path)
    assert (after[0], after[1].st_ino) == (before[0], before[1].st_ino)
    for end in ends:
        os.close(end)


def test_permissions_stay_and_those_of_a_new_file_are_the_users(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        replace_file(tmp_path / "new", [b""])
        replace_file(tmp_path / "own", [b""], 0o600)
    finally:
        os.umask(before)
    assert (mode(tmp_path / "new"), mode(tmp_path / "own")) == (0o640, 0o600)
    (tmp_path / "new").chmod(0o604)
    replace_file(tmp_path / "new", [b"more"])
    assert mode(tmp_path / "new") == 0o604


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "file").write_bytes(b"before")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        replace_file(tmp_path / "file", [b"after"])
    assert (tmp_path / "file").read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["file"]
