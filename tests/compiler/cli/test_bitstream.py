"""``dovetail bitstream``: what it writes and says, without the minutes of placing."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dovetail.bitstreams import flow
from dovetail.bitstreams.boards import Board, find_board
from dovetail.compiler.cli import bitstream as command

from .commands import invoke, refused


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Arguments that the tools get; each leaves a file whose content is its name."""
    asked: dict[str, Any] = {}

    def write_sources(board: Board, folder: Path) -> None:
        asked["board"] = board
        for name in ("top.il", "top.lpf"):
            (folder / name).write_text(name)

    def place(
        board: Board, folder: Path, seeds: Sequence[int], jobs: int, say: object
    ) -> flow.Placement:
        asked.update(seeds=seeds, jobs=jobs)
        report = folder / "seed.json"
        report.write_text("report")
        used = {"MULT18X18D": (78, 156)}
        return flow.Placement(seeds[-1], folder / "seed", report, {"sync": (75e6, 50e6)}, used)

    def pack(placement: flow.Placement, folder: Path) -> Path:
        for suffix in (".bit", ".svf"):
            (folder / f"top{suffix}").write_text(suffix)
        return folder / "top.bit"

    monkeypatch.setattr(flow, "write_sources", write_sources)
    monkeypatch.setattr(flow, "synthesize", lambda folder, board: None)
    monkeypatch.setattr(flow, "place", place)
    monkeypatch.setattr(flow, "pack", pack)
    return asked


def test_all_files_of_a_bitstream_are_written(asked: dict[str, Any], tmp_path: Path) -> None:
    board = find_board("ulx3s-85f")
    shown = invoke("bitstream", "--board", board.name, "-o", tmp_path / "out").output
    assert asked == {"board": board, "seeds": range(board.seed, board.seed + 8), "jobs": 2}
    files = {path.name: path.read_text() for path in (tmp_path / "out").iterdir()}
    manifest = json.loads(files.pop("manifest.json"))
    bit, svf = f"{board.name}.bit", f"{board.name}.svf"
    assert files == {bit: ".bit", svf: ".svf", "report.json": "report"}
    assert (manifest["board"], manifest["seed"]) == (board.name, board.seed + 7)
    assert manifest["bitstream"] == hashlib.sha256(b".bit").hexdigest()
    assert str(tmp_path / "out" / bit) in shown.replace("\n", "")


def test_a_bitstream_of_ones_own_is_placed_anywhere(asked: dict[str, Any], tmp_path: Path) -> None:
    options = ("--config", "ecp5_25", "--first-seed", 3, "--seeds", 2, "--jobs", 1, "--json")
    shown = invoke("bitstream", "--board", "ulx3s-85f", "-o", tmp_path, *options).stdout
    board = asked.pop("board")
    assert (board.config.name, board.floorplan) == ("ecp5_25", False)
    assert asked == {"seeds": range(3, 5), "jobs": 1}
    row = json.loads(shown)
    assert (row["configuration"], row["multipliers"]) == ("ecp5_25", "78 (50 %)")


@pytest.mark.parametrize("status", [0, 2])
def test_the_bitstream_is_loaded_into_the_board_on_demand(
    status: int, asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    def run(arguments: list[str], check: bool) -> SimpleNamespace:
        calls.append(arguments)
        return SimpleNamespace(returncode=status)

    monkeypatch.setattr(command.subprocess, "run", run)
    monkeypatch.setattr(command.shutil, "which", lambda name: name)
    arguments = ("bitstream", "--board", "ulx3s-85f", "-o", tmp_path, "--program")
    result = invoke(*arguments)
    assert result.exit_code == (1 if status else 0)
    bit = str(tmp_path / "ulx3s-85f.bit")
    assert calls == [["openFPGALoader", "--board", "ulx3s", bit]]
    assert ("failed with status 2; is the board plugged in?" in result.output) == bool(status)


def test_boards_of_zynq_are_programmed_by_other_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command.shutil, "which", lambda name: name)
    arguments = ("bitstream", "--board", "pynq-z1", "-o", tmp_path / "out", "--program")
    refused(invoke(*arguments), "pynq-z1 is programmed from Vivado, or by PYNQ")
    assert not (tmp_path / "out").exists()
