"""Every guide does what its page says, numbers included."""

import os
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from dovetail.bitstreams.boards import find_board

from ..once import short_searches
from .page import PageError, blocks_of, commands_of, pieces_of, run_block, run_page

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("isa", "vta_hw", "vta_sim", "runtime", "bitstreams", "compiler")
GUIDES = {path.name: path for path in sorted((ROOT / "docs" / "guides").glob("*.md"))}
CHANGES_SOURCES = {"buffer.md", "instruction.md", "model.md"}
"""Guides that run in a copy of the repository.  The suite applies their changes."""
SLOW = CHANGES_SOURCES | {"own-instruction.md"}
"""Guides that ``make snippets`` runs: each builds hardware anew or compiles eight networks, for up
to a CPU minute.
"""
ANY_PLAN = {"own-hardware.md", "quantize.md"}
"""Guides that compile networks, and say nothing of what depends on the plan that is found."""
NEEDS = {"own-board.md": "amaranth_boards"}


def copy_repository(folder: Path) -> dict[str, str]:
    """Copy what a guide may change; the environment in which ``dovetail`` is the copy."""
    for name in (*SOURCES, "tests", "docs"):
        kept_out = shutil.ignore_patterns("__pycache__", "reference")
        shutil.copytree(ROOT / name, folder / name, ignore=kept_out)
    (folder / "links" / "dovetail").mkdir(parents=True)
    for name in SOURCES:
        (folder / "links" / "dovetail" / name).symlink_to(folder / name)
    return {"PYTHONPATH": str(folder / "links")}


def test_the_guide_to_a_model_names_the_configuration_of_the_board() -> None:
    page, board = GUIDES["model.md"].read_text(encoding="utf-8"), find_board("ulx3s-85f")
    assert f"The ULX3S carries the configuration `{board.config.name}`" in page
    assert f"--target vta:{board.config.name} " in page


def test_the_guide_to_a_finish_shows_the_example() -> None:
    record = next(each for each in blocks_of(GUIDES["own-instruction.md"]))
    assert record.text == (ROOT / "examples" / "finish" / "acme_finishes.py").read_text()


@pytest.mark.parametrize("name", sorted(GUIDES))
def test_the_guide_does_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name in SLOW and "SLOW_SNIPPETS" not in os.environ:
        pytest.skip(f"{name} is slow: make snippets")
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"needs {NEEDS[name]}")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    if name in CHANGES_SOURCES:
        environment = {**os.environ, **copy_repository(tmp_path)}
        command = [sys.executable, str(Path(__file__).parent / "page.py"), str(GUIDES[name])]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return
    # Packages that a guide installs go into its folder, and are found there.
    (tmp_path / "installed").mkdir()
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "installed"))
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "installed"))
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    with short_searches() if name in ANY_PLAN else nullcontext():
        run_page(GUIDES[name])


def test_changes_of_guides_fit_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in sorted(CHANGES_SOURCES):
        folder = tmp_path / name
        copy_repository(folder)
        monkeypatch.chdir(folder)
        changes = [block for block in blocks_of(GUIDES[name]) if block.language == "diff"]
        assert changes
        for block in changes:
            run_block(block, GUIDES[name], {})


def test_a_wrong_number_in_a_page_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(2 + 2)\n```\n\n```text\n4\n```\n")
    run_page(page)
    page.write_text("```python\nprint(2 + 2)\n```\n\n```text\n5\n```\n")
    with pytest.raises(PageError, match=r"page.md:6: it says\n5\n\nnot\n4\n"):
        run_page(page)


def test_a_command_that_fails_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for command in ("dovetail config show nothing", "dovetail config show nothing | cat"):
        page.write_text(f"```sh\n{command}\n```\n")
        with pytest.raises(PageError, match=r"page.md:2"):
            run_page(page)


def test_blocks_know_their_lines(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```sh\ntrue\n```\n\n```python\nx = 1\n```\n")
    assert [(b.language, b.line) for b in blocks_of(page)] == [("sh", 4), ("python", 8)]


def test_only_plain_commands_do_without_a_shell() -> None:
    said = 'dovetail run a.dvt --input x=x.npy  # a remark\n\ndovetail debug \\\n  -c "step 2"\n'
    assert commands_of(said) == [["run", "a.dvt", "--input", "x=x.npy"], ["debug", "-c", "step 2"]]
    for text in ("dovetail run x | cat", "make demo", "dovetail a && dovetail b", "dovetail a > b"):
        assert commands_of(text) is None
    assert commands_of("dovetail run $MODULE") is None


def test_commands_among_lines_of_a_shell_do_without_it_unless_lines_need_each_other() -> None:
    written = "cat > a.toml <<'END'\ndovetail = 1\nEND\n"
    pieces = [written, "dovetail a \\\n  b\ndovetail c\n", "mv a.toml b.toml\ngrep x b.toml\n"]
    assert pieces_of("".join(pieces)) == pieces
    for text in (
        "X=1\ndovetail a\n",
        "for x in 1 2; do\n  dovetail a\ndone\n",
        "cd b\ndovetail a\n",
    ):
        assert pieces_of(text) == [text]
