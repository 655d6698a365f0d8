"""The steps from a netlist to a bitstream."""

import json
from pathlib import Path
from threading import Event

import pytest

from dovetail.isa.configs import find_config
from dovetail.isa.memories import Memory

pytest.importorskip("amaranth", reason="Amaranth is not installed")


def test_scratchpads_are_block_ram_and_nothing_else(tmp_path: Path) -> None:
    from amaranth.back import rtlil

    from dovetail.bitstreams.flow import TOP, synthesize
    from dovetail.vta_hw.scratchpad import SimpleScratchpad
    from dovetail.vta_hw.verilog import find_yosys

    find_yosys()
    scratchpad = SimpleScratchpad(find_config("tiny"), Memory.WGT)
    (tmp_path / f"{TOP}.il").write_text(rtlil.convert(scratchpad, name=TOP, emit_src=False))
    synthesize(tmp_path)
    cells = json.loads((tmp_path / f"{TOP}.json").read_text())["modules"][TOP]["cells"]
    assert {cell["type"] for cell in cells.values()} - {"$scopeinfo"} == {"DP16KD"}


def test_a_tool_is_ended_when_it_is_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dovetail.bitstreams import flow
    from dovetail.vta_hw.verilog import HardwareError

    (tmp_path / "sleeper").write_text("import time\nprint('began', flush=True)\ntime.sleep(600)\n")
    monkeypatch.setattr(flow, "tool_directory", lambda: tmp_path)
    stop = Event()
    stop.set()
    with pytest.raises(HardwareError, match="sleeper failed with status"):
        flow.run_tool(tmp_path, "sleeper", stop=stop)
    assert (tmp_path / "sleeper.log").read_text() == "began\n"
