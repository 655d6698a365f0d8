"""One process at a time works in a folder."""

from functools import partial
from pathlib import Path

import pytest

from dovetail.compiler.errors import TuneError
from dovetail.compiler.processes.folder_lock import locked


def test_two_searches_do_not_share_a_folder(tmp_path: Path) -> None:
    lock, refused = partial(locked, tmp_path / "out", "search", TuneError), "another search is at"
    with lock(), pytest.raises(TuneError, match=refused), lock():
        pass
    with lock():
        pass


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lock = locked(tmp_path / "file" / "out", "search", TuneError)
    with pytest.raises(TuneError, match="cannot be written"), lock:
        pass
