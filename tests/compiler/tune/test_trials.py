"""The file of trials: corrupt lines, torn lines, a full disk, two searches at a time."""

import errno
import os
from pathlib import Path

import pytest

from dovetail.compiler.errors import TuneError
from dovetail.compiler.tune.trials import DAMAGED, TRIALS, Trial, TrialFile, read_trials


def trial(number: int) -> Trial:
    """One that differs by its number."""
    return Trial("cpu", f"key{number}", "title", {"steps": []}, 0.5, 1.0, "", (1.0, 2.0))


def written(folder: Path, count: int) -> Path:
    """A file of ``count`` trials."""
    file = TrialFile(folder)
    for number in range(count):
        file.append(trial(number))
    file.close()
    return folder / TRIALS


def test_what_was_appended_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path, 3)
    assert read_trials(path) == [trial(0), trial(1), trial(2)]
    file = TrialFile(tmp_path)
    assert file.trials == [trial(0), trial(1), trial(2)]
    assert file.notes == []
    file.close()


def test_lines_with_nothing_in_them_are_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path, 2)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n \n\n"))
    assert read_trials(path) == [trial(0), trial(1)]


def test_a_torn_last_line_is_set_aside_and_the_others_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path, 3)
    path.write_bytes(path.read_bytes()[:-20])
    file = TrialFile(tmp_path)
    file.append(trial(7))
    file.close()
    assert read_trials(path) == [trial(0), trial(1), trial(7)]
    assert "1 of 3 lines cannot be read (line 3)" in file.notes[0]
    assert (tmp_path / DAMAGED).read_bytes().startswith(b'{"setting"')


@pytest.mark.parametrize(
    ("count", "lines"), [(8, "1, 2, 3, 4, 5, 6, 7, 8"), (9, "1, 2, 3, 4, 5, 6, 7, 8, ...")]
)
def test_the_first_eight_damaged_lines_are_named(tmp_path: Path, count: int, lines: str) -> None:
    path = written(tmp_path, 1)
    path.write_bytes(b"?\n" * count + path.read_bytes())
    file = TrialFile(tmp_path)
    file.close()
    assert f"{count} of {count + 1} lines cannot be read (line {lines});" in file.notes[0]


@pytest.mark.parametrize(
    "line", [b"nonsense", b"{}", b"[1]", b'{"setting": 1}', b"\xff\xfe", b"null"]
)
def test_a_corrupt_line_is_named_by_its_number(tmp_path: Path, line: bytes) -> None:
    path = written(tmp_path, 2)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + line + b"\n" + lines[1])
    with pytest.raises(TuneError, match=r"line 2: found no trial; .*remove the line"):
        read_trials(path)
    file = TrialFile(tmp_path)
    file.close()
    assert file.trials == [trial(0), trial(1)]
    assert (tmp_path / DAMAGED).read_bytes() == line + b"\n"


@pytest.mark.parametrize("room", [0, 17])
def test_a_full_disk_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    path = written(tmp_path, 2)
    file = TrialFile(tmp_path)
    write = os.write

    def full(handle: int, data: bytes) -> int:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(handle, data[:room])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(TuneError, match=r"its 2 results are kept: make room"):
        file.append(trial(2))
    monkeypatch.undo()
    file.close()
    assert read_trials(path) == [trial(0), trial(1)]
