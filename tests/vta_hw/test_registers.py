"""The host's registers on Verilator, driven by cocotbext-axi."""

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster

from dovetail.isa.configs import find_config
from dovetail.isa.registers import COUNTERS, IDENTITY, REGISTERS, VERSION, Access, Control
from dovetail.vta_hw.registers import HostRegisters

from .axi_memory import random_pauses
from .rtl import parameters, simulate, simulate_all, start_clock

CONFIG = find_config("tiny")
OFFSETS = {register.name: register.offset for register in REGISTERS}


def make_registers() -> HostRegisters:
    """The registers of ``CONFIG``."""
    return HostRegisters(CONFIG)


async def connect_host(dut: Any) -> tuple[np.random.Generator, AxiLiteMaster]:
    """Reset, and attach a manager with random pauses on every channel."""
    rng = np.random.default_rng(parameters()["seed"])
    await start_clock(dut)
    host = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "host_"), dut.clk, dut.rst)
    channels = (
        *(host.write_if.aw_channel, host.write_if.w_channel, host.write_if.b_channel),
        *(host.read_if.ar_channel, host.read_if.r_channel),
    )
    for channel in channels:
        channel.set_pause_generator(random_pauses(rng))
    return rng, host


@cocotb.test()
async def settings_and_counters(dut: Any) -> None:
    """Settings keep what is written, bytes by strobe; the rest shows the machine's state."""
    rng, host = await connect_host(dut)
    values = [int(value) for value in rng.integers(0, 1 << 63, len(COUNTERS))]
    dut.counters.value = sum(value << 64 * place for place, value in enumerate(values))
    dut.error_code.value = 5
    dut.error_index.value = 1234567
    dut.failed.value = 1
    kept = dict.fromkeys((r.name for r in REGISTERS if r.access is Access.READ_WRITE), 0)
    for _ in range(40):
        name = str(rng.choice(list(kept)))
        first = int(rng.integers(0, 4))
        data = rng.bytes(int(rng.integers(1, 5 - first)))
        await host.write(OFFSETS[name] + first, data)
        old = bytearray(kept[name].to_bytes(4, "little"))
        old[first : first + len(data)] = data
        kept[name] = int.from_bytes(old, "little")
        # Neither a read-only register nor an unmapped address changes anything.
        await host.write_dword(int(rng.choice([0x00, 0x10, 0x7C, 0x80, 0x3FC])), 0xFFFFFFFF)
    expected = {
        **kept,
        "ID": IDENTITY,
        "VERSION": VERSION,
        "FINGERPRINT": CONFIG.fingerprint,
        "CONTROL": 0,
        "STATUS": 4,
        "ERROR_CODE": 5,
        "ERROR_INDEX": 1234567,
    }
    for (name, _), value in zip(COUNTERS, values, strict=True):
        expected[f"{name.upper()}_LOW"] = value & 0xFFFFFFFF
        expected[f"{name.upper()}_HIGH"] = value >> 32
    assert set(expected) == set(OFFSETS)
    for name in rng.permutation(list(expected)):
        assert await host.read_dword(OFFSETS[name]) == expected[name], name
    assert await host.read_dword(0x3FC) == 0
    for name, value in kept.items():
        assert int(getattr(dut, name.lower()).value) == value


@cocotb.test()
async def commands(dut: Any) -> None:
    """START and STOP last a cycle; START counts only when idle, STOP only when busy."""
    _, host = await connect_host(dut)
    pulses = {"start": 0, "stop": 0}

    async def watch() -> None:
        while True:
            await FallingEdge(dut.clk)
            for name in pulses:
                pulses[name] += int(getattr(dut, name).value)

    cocotb.start_soon(watch())
    for busy, bit, expected in (
        (0, Control.START, {"start": 1, "stop": 0}),
        (1, Control.START, {"start": 1, "stop": 0}),
        (1, Control.STOP, {"start": 1, "stop": 1}),
        (0, Control.STOP, {"start": 1, "stop": 1}),
    ):
        dut.busy.value = busy
        await host.write_dword(OFFSETS["CONTROL"], 1 << bit)
        await RisingEdge(dut.clk)
        assert pulses == expected


def test_settings_keep_what_is_written_and_the_rest_shows_the_machine() -> None:
    simulate_all(make_registers, [(settings_and_counters, {"seed": seed}) for seed in (51, 52)])


def test_commands_are_pulses_that_wait_for_the_right_state() -> None:
    simulate(make_registers, commands, seed=53)
