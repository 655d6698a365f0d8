"""Every tutorial, and the guide to own hardware, does what its page says, numbers included."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.bitstreams.boards import find_board

from .page import blocks_of

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"
SOURCES = ("isa", "vta_hw", "vta_sim", "runtime", "bitstreams", "compiler")
PAGES = {path.name: path for path in (*TUTORIALS.glob("*.md"), ROOT / "docs" / "own-hardware.md")}
CHANGES_SOURCES = {"buffer.md", "instruction.md", "model.md"}
"""Tutorials that run in a copy of the repository."""


def copy_repository(folder: Path) -> dict[str, str]:
    """Copy what a tutorial may change; the environment in which ``dovetail`` is the copy."""
    for name in (*SOURCES, "tests", "docs"):
        kept_out = shutil.ignore_patterns("__pycache__", "reference")
        shutil.copytree(ROOT / name, folder / name, ignore=kept_out)
    (folder / "links" / "dovetail").mkdir(parents=True)
    for name in SOURCES:
        (folder / "links" / "dovetail" / name).symlink_to(folder / name)
    return {"PYTHONPATH": str(folder / "links")}


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_tutorial_does_what_it_says(name: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "100",
    }
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    if name in CHANGES_SOURCES:
        environment |= copy_repository(tmp_path)
    command = [sys.executable, str(Path(__file__).parent / "page.py"), str(PAGES[name])]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_model_s_tutorial_names_the_board_s_configuration() -> None:
    page, board = (TUTORIALS / "model.md").read_text(encoding="utf-8"), find_board("ulx3s-85f")
    assert f"The ULX3S carries the configuration `{board.config.name}`" in page
    assert f"--target vta:{board.config.name} " in page


def test_a_wrong_number_in_a_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    command = [sys.executable, str(Path(__file__).parent / "page.py"), str(page)]
    for said, code in (("4", 0), ("5", 1)):
        page.write_text(f"```python\nprint(2 + 2)\n```\n\n```text\n{said}\n```\n")
        assert subprocess.run(command, capture_output=True, check=False).returncode == code


def test_blocks_know_their_lines(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```sh\ntrue\n```\n\n```python\nx = 1\n```\n")
    assert [(b.language, b.line) for b in blocks_of(page)] == [("sh", 4), ("python", 8)]
