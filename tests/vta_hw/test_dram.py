"""The DRAM model on Verilator, in every cycle against the formulas of docs/timing.md."""

from dataclasses import dataclass
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge, ReadOnly

from dovetail.isa.config import DramTiming
from dovetail.isa.configs import find_config
from dovetail.vta_hw.dram import DramModel

from .rtl import parameters, simulate, start_clock

CONFIG = find_config("tiny")


@dataclass(frozen=True)
class Command:
    """A burst accepted by the model, and when its beats must move."""

    write: bool
    identity: int
    address: int
    beats: int
    start: int
    interval: int

    def beat_cycle(self, beat: int) -> int:
        return self.start + beat * self.interval

    @property
    def end(self) -> int:
        return self.beat_cycle(self.beats - 1)


def make_dram() -> DramModel:
    """The model of ``CONFIG``."""
    return DramModel(CONFIG)


def random_timing(rng: np.random.Generator) -> DramTiming:
    return DramTiming(
        latency_cycles=int(rng.integers(1, 40)),
        beat_interval_cycles=int(rng.integers(1, 5)),
        queue_bursts=int(rng.choice([1, 2, 5, 64])),
        turnaround_cycles=int(rng.choice([0, 1, 9, 63])),
        response_cycles=int(rng.integers(1, 63)),
    )


@cocotb.test()
async def random_commands(dut: Any) -> None:
    """Commands at random, write data always at hand: every beat and answer in its cycle."""
    rng = np.random.default_rng(parameters()["seed"])
    timing = random_timing(rng)
    dut.latency.value = timing.latency_cycles
    dut.interval.value = timing.beat_interval_cycles
    dut.queue_bursts.value = timing.queue_bursts
    dut.turnaround.value = timing.turnaround_cycles
    dut.response.value = timing.response_cycles
    dut.bus__rready.value = dut.bus__bready.value = dut.bus__wvalid.value = 1
    await start_clock(dut)
    offered: dict[str, tuple[int, int, int] | None] = {"ar": None, "aw": None}
    commands: list[Command] = []
    for cycle in range(2000):
        for channel, offer in offered.items():
            if offer is None and rng.integers(0, 6) == 0:
                beats = int(rng.choice([1, 2, 16, 256]))
                offered[channel] = (int(rng.integers(0, 2)), 4 * int(rng.integers(0, 999)), beats)
        for channel, offer in offered.items():
            getattr(dut, f"bus__{channel}valid").value = offer is not None
            identity, address, beats = offer or (0, 0, 1)
            getattr(dut, f"bus__{channel}id").value = identity
            getattr(dut, f"bus__{channel}addr").value = address
            getattr(dut, f"bus__{channel}len").value = beats - 1
        word = int(rng.integers(0, 1 << 32))
        dut.read_data.value = dut.bus__wdata.value = word
        await ReadOnly()
        check_beats(dut, commands, timing, cycle, word)
        accepted = accept(dut, commands, offered, timing, cycle)
        if accepted:
            offered[accepted] = None
        await FallingEdge(dut.clk)
    assert len(commands) > 3


def accept(
    dut: Any,
    commands: list[Command],
    offered: dict[str, tuple[int, int, int] | None],
    timing: DramTiming,
    cycle: int,
) -> str | None:
    """Hold AR and AW to the rules; add the command accepted in this cycle, and name its channel."""
    room = sum(command.end >= cycle for command in commands) < timing.queue_bursts
    channel = "ar" if offered["ar"] else "aw" if offered["aw"] else None
    for name in ("ar", "aw"):
        taken = getattr(dut, f"bus__{name}valid").value == 1
        taken = taken and getattr(dut, f"bus__{name}ready").value == 1
        assert taken == (room and channel == name)
    if channel is None or not room:
        return None
    offer = offered[channel]
    assert offer is not None
    identity, address, beats = offer
    start = cycle + timing.latency_cycles
    write = channel == "aw"
    if commands:
        turn = timing.turnaround_cycles if commands[-1].write != write else 0
        start = max(start, commands[-1].end + 1 + turn)
    commands.append(Command(write, identity, address, beats, start, timing.beat_interval_cycles))
    return channel


def check_beats(
    dut: Any, commands: list[Command], timing: DramTiming, cycle: int, word: int
) -> None:
    """Exactly the beat and the answer that are due in this cycle are there."""
    reads = writes = 0
    for command in commands:
        if not command.start <= cycle <= command.end:
            continue
        beat, wait = divmod(cycle - command.start, command.interval)
        if wait:
            continue
        reads += not command.write
        writes += command.write
        assert int(dut.address.value) == command.address + beat * CONFIG.bus_bytes
        if command.write:
            assert int(dut.write_data.value) == word
        else:
            assert int(dut.bus__rid.value) == command.identity
            assert int(dut.bus__rdata.value) == word
            assert dut.bus__rlast.value == (beat == command.beats - 1)
    answers = sum(c.write and c.end + timing.response_cycles == cycle for c in commands)
    assert (dut.bus__rvalid.value, dut.write.value, dut.bus__bvalid.value) == (
        reads,
        writes,
        answers,
    )


def test_every_beat_and_answer_comes_in_the_cycle_of_the_formula() -> None:
    for seed in range(61, 64):
        simulate(make_dram, random_commands, seed=seed)
