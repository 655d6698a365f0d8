"""The Zynq's core on Verilator between two AXI ports, and the archive made of it."""

import io
import json
import zipfile
from dataclasses import replace
from typing import Any

import cocotb
import numpy as np
import pytest
from amaranth.hdl import Const, Fragment, Module, Signal, Value
from amaranth.sim import Simulator, SimulatorContext
from cocotb.triggers import FallingEdge, ReadOnly
from cocotbext.axi import AxiBus, AxiMaster

from dovetail.bitstreams import zynq_archive, zynq_top
from dovetail.bitstreams.axi3 import MEMORY_BASE
from dovetail.bitstreams.boards import ZYNQ_BOARDS
from dovetail.bitstreams.zynq_archive import address_map, make_archive
from dovetail.bitstreams.zynq_top import ZynqTop, require_ports
from dovetail.isa.configs import ECP5_85, find_config
from dovetail.isa.errors import ConfigError
from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.program import program_to_bytes
from dovetail.isa.registers import IDENTITY, REGISTERS, Control, Status
from tests.vta_hw.axi_memory import Dram, attach_memory, random_pauses
from tests.vta_hw.rtl import parameters, simulate_all, start_clock

from .boards import SMALL_BOARD
from .zynq_bench import make_zynq

BASE = 0x2000
OFFSETS = {register.name: register.offset for register in REGISTERS}
PROGRAM = (
    Load(
        memory=Memory.ACT, dram_address=0, sram_address=0, count_x=16, post=frozenset({Unit.STORE})
    ),
    Store(dram_address=512, sram_address=0, count_x=16, wait=frozenset({Unit.LOAD})),
)


@cocotb.test()
async def a_program_runs_from_its_base(dut: Any) -> None:
    """Registers by the control port, the program and its data above MEMORY_BASE."""
    rng = np.random.default_rng(parameters()["seed"])
    dram = Dram(bytearray(rng.bytes(BASE + 4096)))
    code = program_to_bytes(PROGRAM)
    dram.data[BASE + 1024 : BASE + 1024 + len(code)] = code
    await start_clock(dut)
    attach_memory(dut, "paused", dram, rng)
    host = AxiMaster(AxiBus.from_prefix(dut, "control_"), dut.clk, dut.rst)
    for channel in (host.write_if.b_channel, host.read_if.r_channel):
        channel.set_pause_generator(random_pauses(rng))
    assert await host.read_dword(OFFSETS["ID"]) == IDENTITY
    await host.write_dword(MEMORY_BASE, BASE)
    assert await host.read_dword(MEMORY_BASE) == BASE
    settings = {
        "PROGRAM_ADDRESS": 1024,
        "PROGRAM_COUNT": len(PROGRAM),
        "WINDOW_LIMIT": 4095,
        "CONTROL": 1 << Control.START,
    }
    for name, value in settings.items():
        await host.write_dword(OFFSETS[name], value)
    while await host.read_dword(OFFSETS["STATUS"]) & 1 << Status.BUSY:
        pass
    assert await host.read_dword(OFFSETS["STATUS"]) == 1 << Status.DONE
    size = 16 * SMALL_BOARD.config.block
    assert dram.data[BASE + 512 : BASE + 512 + size] == dram.data[BASE : BASE + size]
    await FallingEdge(dut.clk)
    await ReadOnly()
    assert dut.irq.value == 1


@cocotb.test()
async def a_burst_to_the_registers_is_an_error(dut: Any) -> None:
    """It is answered, beat by beat, and changes nothing."""
    await start_clock(dut)
    host = AxiMaster(AxiBus.from_prefix(dut, "control_"), dut.clk, dut.rst)
    offset = OFFSETS["PROGRAM_ADDRESS"]
    await host.write_dword(offset, 64)
    assert (await host.write(offset, bytes(16))).resp == 2
    assert (await host.read(offset, 16)).resp == 2
    assert await host.read_dword(offset) == 64


def test_a_program_runs_from_its_base_and_a_burst_to_the_registers_is_an_error() -> None:
    runs = [(a_program_runs_from_its_base, {"seed": seed}) for seed in range(2)]
    simulate_all(make_zynq, [*runs, (a_burst_to_the_registers_is_an_error, {})])


BOARD = replace(ZYNQ_BOARDS["arty-z7-20"], config=SMALL_BOARD.config)


def test_the_archive_has_all_that_vivado_needs() -> None:
    pytest.importorskip("amaranth_boards", reason="needs the extra board")
    archive = zipfile.ZipFile(io.BytesIO(make_archive(BOARD)))
    assert archive.testzip() is None
    assert {each.date_time[0] for each in archive.infolist()} == {1980}, "not the same every day"
    verilog = archive.read("dovetail.v").decode()
    assert "PS7 processing_system" in verilog
    assert "xc7z020clg400-1" in archive.read("dovetail.tcl").decode()
    assert "create_clock -name fclk0 -period 20.0" in archive.read("dovetail.xdc").decode()
    described = json.loads(archive.read("address_map.json"))
    assert described == address_map(BOARD.config)
    assert described["registers"]["STATUS"] == OFFSETS["STATUS"]


def test_an_archive_has_the_same_bytes_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the Verilog in it, tests/vta_hw/test_verilog.py compares two processes."""
    pytest.importorskip("amaranth_boards", reason="needs the extra board")
    monkeypatch.setattr(zynq_archive, "ZynqTop", lambda config: Module())
    first, second = (make_archive(BOARD) for _ in range(2))
    assert first == second


def test_a_configuration_that_does_not_fit_the_ports_is_refused() -> None:
    with pytest.raises(ConfigError, match="a bus of 4 bytes and bursts of 16; required 8 bytes"):
        require_ports(find_config("tiny"))
    with pytest.raises(ConfigError, match="bursts of 32"):
        require_ports(replace(ECP5_85, burst_beats=32))


@pytest.fixture(scope="module")
def top() -> tuple[Fragment, Value]:
    """The logic around the accelerator, and the reset that is synchronised."""
    found = list[Value]()

    def synchronised(asynchronous: Value, *, domain: str) -> Module:
        found.append(asynchronous)
        return Module()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zynq_top, "ResetSynchronizer", synchronised)
        fragment = Fragment.get(ZynqTop(SMALL_BOARD.config), platform=None)
    (asynchronous,) = found
    return fragment, asynchronous


def test_the_reset_of_the_processing_system_is_active_low(top: tuple[Fragment, Value]) -> None:
    """Source: AMD UG585, PL resets: FCLK_RESET0_N."""
    _, asynchronous = top
    (resets,) = asynchronous._rhs_signals()
    m, reset = Module(), Signal()
    m.d.comb += reset.eq(asynchronous)

    async def process(bench: SimulatorContext) -> None:
        for given in range(16):
            bench.set(resets, given)
            await bench.delay(1e-9)
            assert bench.get(reset) == (not given & 1)

    simulator = Simulator(m)
    simulator.add_testbench(process)
    simulator.run()


ENDINGS = {
    1: ("CLK", "VALID", "READY", "LAST", "CAP1EN"),
    2: ("SIZE", "BURST", "LOCK", "RESP"),
    3: ("PROT",),
    4: ("LEN", "CACHE", "QOS", "FCLKCLK", "FCLKRESETN"),
    20: ("IRQF2P",),
    32: ("ADDR",),
}
WIDTHS = {end: width for width, ends in ENDINGS.items() for end in ends}
BUSES = {
    "MAXIGP0": {"DATA": 32, "STRB": 4, "ID": 12},
    "SAXIHP0": {"DATA": 64, "STRB": 8, "ID": 6},
}


def test_the_processing_system_has_its_ports_widths_and_constants(
    top: tuple[Fragment, Value],
) -> None:
    """Source: AMD UG585, AXI interfaces; of a transfer's cache bits, bufferable and modifiable."""
    fragment, _ = top
    (system,) = (each for each, name, _ in fragment.subfragments if name == "processing_system")
    constants = {}
    for port, (value, _) in system.ports.items():
        widths = WIDTHS | BUSES.get(port[:7], {})
        width = max((end for end in widths if port.endswith(end)), key=len)
        assert len(value) == widths[width], port
        if isinstance(value, Const):
            constants[port.removeprefix("SAXIHP0")] = value.value
    found = {f"{channel}{name}" for channel in ("AR", "AW") for name in ("PROT", "LOCK", "QOS")}
    found |= {"RDISSUECAP1EN", "WRISSUECAP1EN"}
    assert constants == dict.fromkeys(found, 0) | {"ARCACHE": 3, "AWCACHE": 3}
