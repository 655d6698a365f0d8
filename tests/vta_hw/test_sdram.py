"""The SDRAM controller on Verilator, against a chip that knows its data sheet, and by its rules."""

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

import cocotb
import numpy as np
import pytest
from amaranth.sim import Simulator
from cocotb.triggers import ClockCycles, FallingEdge, ReadOnly

from dovetail.isa.errors import ConfigError
from dovetail.isa.sdram import sdram_timing
from dovetail.vta_hw.sdram_model import Violation

from .rtl import parameters, simulate, start_clock
from .sdram_bench import BUS_BYTES, CHIP, REGION, SdramBench, make_fast, make_slow
from .sdram_rules import SdramRules

FASTEST = 133_000_000


@dataclass
class Traffic:
    """Traffic on the bus, by cycle since the restart."""

    accepted: list[tuple[int, int, int, bool]] = field(default_factory=list)
    read_beats: list[int] = field(default_factory=list)
    write_beats: list[int] = field(default_factory=list)
    responses: list[int] = field(default_factory=list)


@dataclass
class Command:
    """A burst to offer, some cycles after the one before was accepted."""

    address: int
    beats: int
    write: bool
    idle: int


class Bench:
    """Drives the controller's bus, and knows what its bytes should be."""

    def __init__(self, dut: Any, rng: np.random.Generator) -> None:
        self.dut, self.rng = dut, rng
        self.memory = np.zeros(REGION, np.uint8)
        self.traffic = Traffic()
        self.now = 0

    async def begin(self) -> None:
        """Start the clock; wait until the chip is initialised."""
        dut = self.dut
        for name in ("arvalid", "awvalid", "wvalid"):
            getattr(dut, f"bus__{name}").value = 0
        dut.bus__bready.value = dut.bus__rready.value = 1
        dut.restart.value = 0
        await start_clock(dut)
        for _ in range(20_000):
            if dut.ready.value == 1:
                await ClockCycles(dut.clk, 50)
                await FallingEdge(dut.clk)
                return
            await FallingEdge(dut.clk)
        raise AssertionError("never ready")

    async def run(self, commands: list[Command], pauses: bool) -> Traffic:
        """Offer the commands, one after the other, from the cycle of a restart."""
        dut = self.dut
        waiting = deque(commands)
        idle = waiting[0].idle
        words: deque[tuple[int, int]] = deque()
        expected: deque[int] = deque()
        left = sum(command.beats for command in commands)
        answers = sum(command.write for command in commands)
        dut.restart.value = 1
        while left or len(self.traffic.responses) < answers:
            offer = waiting[0] if waiting and idle == 0 else None
            idle = max(0, idle - 1)
            self._offer(offer)
            show = bool(words) and not (pauses and self.rng.integers(3) == 0)
            dut.bus__wvalid.value = int(show)
            if show:
                dut.bus__wdata.value, dut.bus__wstrb.value = words[0]
            await ReadOnly()
            if offer and (dut.bus__awready if offer.write else dut.bus__arready).value == 1:
                self.traffic.accepted.append((self.now, offer.address, offer.beats, offer.write))
                waiting.popleft()
                idle = waiting[0].idle if waiting else 0
                (words.extend if offer.write else expected.extend)(self._beats(offer))
            if show and dut.bus__wready.value == 1:
                words.popleft()
                self.traffic.write_beats.append(self.now)
                left -= 1
            if dut.bus__rvalid.value == 1:
                self.traffic.read_beats.append(self.now)
                assert int(dut.bus__rdata.value) == expected.popleft()
                left -= 1
            if dut.bus__bvalid.value == 1:
                self.traffic.responses.append(self.now)
            assert dut.violation.value == 0, Violation(int(dut.violation.value)).name
            await FallingEdge(dut.clk)
            dut.restart.value = 0
            self.now += 1
            assert self.now < 400_000
        return self.traffic

    def _offer(self, offer: Command | None) -> None:
        for channel, write in (("ar", False), ("aw", True)):
            valid = offer is not None and offer.write == write
            getattr(self.dut, f"bus__{channel}valid").value = int(valid)
            if valid and offer:
                getattr(self.dut, f"bus__{channel}addr").value = offer.address
                getattr(self.dut, f"bus__{channel}len").value = offer.beats - 1

    def _beats(self, command: Command) -> list[Any]:
        """Random data and strobes of a write, done at once; or the values that a read must give."""
        found: list[Any] = []
        for beat in range(command.beats):
            start = (command.address + beat * BUS_BYTES) % REGION
            here = self.memory[start : start + BUS_BYTES]
            if not command.write:
                found.append(int.from_bytes(here.tobytes(), "little"))
                continue
            data = self.rng.integers(0, 256, BUS_BYTES, dtype=np.uint8)
            strobe = int(self.rng.choice([0xFF, 0xFF, 0, self.rng.integers(256)]))
            kept = np.array([strobe >> byte & 1 for byte in range(BUS_BYTES)], bool)
            here[kept] = data[kept]
            found.append((int.from_bytes(data.tobytes(), "little"), strobe))
        return found


def random_commands(rng: np.random.Generator, count: int) -> list[Command]:
    """Bursts in few rows, so that rows are hit, missed and closed by refreshes."""
    commands = []
    for _ in range(count):
        beats = int(rng.choice([1, 2, 8, 16]))
        place = int(rng.integers(REGION // 128)) if rng.integers(3) else int(rng.integers(8))
        offset = int(rng.integers(16 - beats + 1)) * BUS_BYTES
        idle = int(
            rng.choice(
                [0, 0, 0, 1, 3, 20, 200, 2000], p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.05, 0.045, 0.005]
            )
        )
        commands.append(Command(place * 128 + offset, beats, bool(rng.integers(2)), idle))
    return commands


@cocotb.test()
async def traffic_by_the_rules(dut: Any) -> None:
    """Every beat and response in the cycle that the rules say, with its bytes."""
    values = parameters()
    rng = np.random.default_rng(values["seed"])
    timing = sdram_timing(CHIP, values["clock_hz"], values["io_delay"])
    bench = Bench(dut, rng)
    await bench.begin()
    traffic = await bench.run(random_commands(rng, 600), pauses=False)
    rules = SdramRules(timing, BUS_BYTES, restart=0)
    step = BUS_BYTES // 2
    reads, writes, answers = [], [], []
    for accepted, address, beats, write in traffic.accepted:
        burst = rules.burst(accepted, address, beats, write)
        if write:
            writes += [burst.first + step * beat for beat in range(beats)]
            answers.append(burst.last + 1)
        else:
            arrival = burst.first + step - 1 + timing.read_latency
            reads += [arrival + step * beat for beat in range(beats)]
    assert traffic.write_beats == writes
    assert traffic.read_beats == reads
    assert traffic.responses == answers


@cocotb.test()
async def paused_write_data(dut: Any) -> None:
    """Write data that comes late: no violation, and the bytes are right."""
    rng = np.random.default_rng(parameters()["seed"])
    bench = Bench(dut, rng)
    await bench.begin()
    await bench.run(random_commands(rng, 400), pauses=True)


@cocotb.test()
async def starts_from_settled(dut: Any) -> None:
    """From a restart soon after ``settled`` to the first beat, whatever was before it."""
    bench = Bench(dut, np.random.default_rng(1))
    await bench.begin()
    read = Command(address=0, beats=1, write=False, idle=0)

    async def cycles_of_read() -> int:
        bench._offer(read)
        for cycle in range(1000):
            await ReadOnly()
            taken, found = dut.bus__arready.value == 1, dut.bus__rvalid.value == 1
            await FallingEdge(dut.clk)
            if taken:
                bench._offer(None)
            if found:
                return cycle
        raise AssertionError("no beat")

    found = set()
    for before in range(0, 420, 2):
        await cycles_of_read()
        for _ in range(before):
            await FallingEdge(dut.clk)
        while dut.settled.value == 0:
            await FallingEdge(dut.clk)
        for _ in range(before % 3):
            await FallingEdge(dut.clk)
        dut.restart.value = 1
        await FallingEdge(dut.clk)
        dut.restart.value = 0
        found.add(await cycles_of_read())
    assert len(found) == 1, found


def test_a_run_from_settled_memory_takes_the_same_cycles() -> None:
    simulate(make_slow, starts_from_settled, seed=1)


@pytest.mark.parametrize(
    ("make", "clock_hz", "io_delay"), [(make_fast, 100_000_000, 0), (make_slow, 50_000_000, 2)]
)
def test_traffic_by_the_rules(make: Any, clock_hz: int, io_delay: int) -> None:
    for seed in range(2):
        simulate(make, traffic_by_the_rules, clock_hz=clock_hz, io_delay=io_delay, seed=seed)


def test_paused_write_data() -> None:
    simulate(make_fast, paused_write_data, seed=9)


@pytest.mark.parametrize(
    ("shortened", "violation"),
    [
        ({"rcd": 2}, Violation.ROW_TO_COLUMN),
        ({"rp": 2}, Violation.PRECHARGE_TIME),
        ({"rfc": 7}, Violation.REFRESH_TIME),
        ({"wr": 1}, Violation.WRITE_RECOVERY),
        ({"power_up": 80}, Violation.POWER_UP),
        ({"cas": 2}, Violation.MODE),
        ({}, Violation.NONE),
    ],
)
def test_a_controller_that_waits_too_little_is_caught(
    shortened: dict[str, int], violation: Violation
) -> None:
    """Two writes and two reads of two rows of one bank, by Amaranth's simulator."""
    chip = replace(CHIP, power_up=1)
    bench = SdramBench(replace(sdram_timing(chip, FASTEST), **shortened), FASTEST)

    async def drive(context: Any) -> None:
        bus = bench.bus
        context.set(bus.rready, 1)
        context.set(bus.bready, 1)
        context.set(bus.wvalid, 1)
        await context.tick().until(bench.ready)
        context.set(bench.restart, 1)
        await context.tick()
        context.set(bench.restart, 0)
        for channel, row in (("aw", 0), ("aw", 1), ("ar", 0), ("ar", 1)):
            context.set(getattr(bus, f"{channel}addr"), row * chip.row_bytes * chip.banks)
            context.set(getattr(bus, f"{channel}valid"), 1)
            await context.tick().until(getattr(bus, f"{channel}ready"))
            context.set(getattr(bus, f"{channel}valid"), 0)
        await context.tick().repeat(100)
        assert Violation(context.get(bench.violation)) is violation

    simulator = Simulator(bench)
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive)
    simulator.run()


def test_a_clock_above_the_chips_is_refused() -> None:
    with pytest.raises(ConfigError, match="clock 200 MHz; required at most 133"):
        sdram_timing(CHIP, 200_000_000)
