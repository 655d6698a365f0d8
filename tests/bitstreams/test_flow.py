"""The steps from a netlist to a bitstream."""

import json
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from dovetail.isa.configs import find_config
from dovetail.isa.memories import Memory

pytest.importorskip("amaranth", reason="Amaranth is not installed")


@pytest.fixture
def native_tools(native_yosys: Path | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flow finds Yosys as machine code under the name of the WebAssembly build."""
    if native_yosys is not None:
        monkeypatch.setattr("dovetail.bitstreams.flow.tool_directory", lambda: native_yosys.parent)


def test_scratchpads_are_block_ram_and_nothing_else(native_tools: None, tmp_path: Path) -> None:
    from amaranth.back import rtlil

    from dovetail.bitstreams.boards import find_board
    from dovetail.bitstreams.flow import TOP, synthesize
    from dovetail.vta_hw.scratchpad import SimpleScratchpad
    from dovetail.vta_hw.verilog import find_yosys

    find_yosys()
    scratchpad = SimpleScratchpad(find_config("tiny"), Memory.WGT)
    (tmp_path / f"{TOP}.il").write_text(rtlil.convert(scratchpad, name=TOP, emit_src=False))
    router = ("router2/bbMargin/x", 10), ("router2/histCongWeight", 0.5)
    synthesize(tmp_path, replace(find_board("ulx3s-85f-8x8"), router=router))
    module = json.loads((tmp_path / f"{TOP}.json").read_text())["modules"][TOP]
    types = {cell["type"] for cell in module["cells"].values()}
    assert types - {"$scopeinfo"} == {"DP16KD"}
    # Without the space nextpnr takes 10 for a binary number.
    assert module["settings"] == {"router2/bbMargin/x": "10 ", "router2/histCongWeight": "0.5"}


def report(**delays: float) -> dict[str, object]:
    """nextpnr's, of clocks of 50 and 100 MHz, and of a path's delay, ns, for each FROM_TO."""
    fmax = {
        "clk": {"achieved": 60.0, "constraint": 50.0},
        "core": {"achieved": 110.0, "constraint": 100.0},
    }
    paths = [
        {
            "from": f"posedge {name.split('_')[0]}",
            "to": f"posedge {name.split('_')[1]}",
            "path": [{"type": "clk-to-q", "delay": 0.5}, {"type": "routing", "delay": delay - 0.5}],
        }
        for name, delay in delays.items()
    ]
    waits = {"from": "<async>", "to": "posedge clk", "path": [{"type": "routing", "delay": 99.0}]}
    return {"fmax": fmax, "critical_paths": [*paths, waits]}


@pytest.mark.parametrize(
    ("delays", "passes"),
    [
        ({"clk_clk": 16.0}, True),
        ({"clk_core": 9.9, "core_clk": 9.9}, True),
        ({"clk_core": 9.9, "core_clk": 10.1}, False),
        ({"clk_core": 10.1}, False),
    ],
)
def test_paths_between_clocks_have_a_period_of_the_faster(
    delays: dict[str, float], passes: bool
) -> None:
    from dovetail.bitstreams.flow import Placement, clocks_of

    clocks = clocks_of(report(**delays))
    assert Placement(1, Path("seed1"), Path("seed1.json"), clocks, {}).passes == passes
    assert set(clocks) - {"clk", "core"} == {
        name.replace("_", " to ") for name in delays if name != "clk_clk"
    }


def test_output_registers_of_weights_are_in_block_ram(native_tools: None, tmp_path: Path) -> None:
    from amaranth.back import rtlil
    from amaranth.hdl import ClockDomain, Module
    from amaranth.lib import wiring
    from amaranth.lib.wiring import connect, flipped

    from dovetail.bitstreams.flow import TOP, synthesize
    from dovetail.vta_hw.pipeline import CORE, delayed
    from dovetail.vta_hw.verilog import find_yosys
    from dovetail.vta_hw.weight_scratchpad import HalvedScratchpad

    class Registered(wiring.Component):
        def __init__(self) -> None:
            self.inner = HalvedScratchpad(find_config("tiny"), 2, 4, apart=1)
            super().__init__(dict(self.inner.signature.members.items()))

        def elaborate(self, platform: object) -> Module:
            m = Module()
            m.submodules.inner = inner = self.inner
            for name in self.signature.members:
                if name == "write":
                    connect(m, flipped(self.write), inner.write)
                    continue
                own, port = getattr(self, name), getattr(inner, name)
                m.d.comb += [port.address.eq(own.address), port.enable.eq(own.enable)]
                m.d.comb += own.data.eq(delayed(m, port.data, f"kept_{name}", domain=CORE))
            return m

    find_yosys()
    text = rtlil.convert(
        Registered(),
        name=TOP,
        emit_src=False,
        missing_domain=lambda domain: ClockDomain(domain, reset_less=True),
    )
    (tmp_path / f"{TOP}.il").write_text(text)
    synthesize(tmp_path)
    cells = json.loads((tmp_path / f"{TOP}.json").read_text())["modules"][TOP]["cells"]
    memories = [cell for cell in cells.values() if cell["type"] == "DP16KD"]
    # 128 words of 2 halves in 2 parts of 32 bits each, as 256 of 32: two words written together.
    assert len(memories) == 4
    assert {cell["parameters"]["REGMODE_B"] for cell in memories} == {"OUTREG"}
    assert not [name for name in cells if "kept" in name]


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
