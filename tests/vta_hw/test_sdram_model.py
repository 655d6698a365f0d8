"""Each rule of the chip's data sheet, broken by one cycle or kept just so."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from amaranth.hdl import ClockDomain, Module
from amaranth.sim import Simulator

from dovetail.vta_hw.sdram import SdramCommand as Do
from dovetail.vta_hw.sdram_model import SdramModel, Violation

from .sdram_bench import CHIP

ALL = 1 << 10
Step = tuple[int, int, int, int]
"""Cycles since the step before, a command, its bank and its address."""

DRIVE = 8
"""Instead of a command: the controller drives the data pins."""

Run = Callable[..., Violation]


@pytest.fixture(scope="module")
def model() -> tuple[Simulator, SdramModel, Any]:
    """At 100 MHz: cycles are 10 ns, and the CAS latency is 2.  It powers up in 10 cycles, and is
    refreshed every 10.
    """
    top, domain = Module(), ClockDomain("sync")
    top.domains += domain
    top.submodules.model = model = SdramModel(replace(CHIP, power_up=0.1, refresh=100), 100_000_000)
    simulator = Simulator(top)
    simulator.add_clock(1e-8)
    return simulator, model, domain.rst


@pytest.fixture(scope="module")
def run(model: tuple[Simulator, SdramModel, Any]) -> Run:
    """The first violation of some steps."""
    simulator, chip, reset = model
    waiting: list[tuple[Step, ...]] = []
    found: list[int] = []

    async def drive(context: Any) -> None:
        context.set(reset, 1)
        await context.tick()
        context.set(reset, 0)
        pins = chip.pins
        for gap, command, bank, address in waiting.pop():
            if gap:
                await context.tick().repeat(gap)
            context.set(pins.command, command % DRIVE)
            context.set(pins.drive, command == DRIVE)
            context.set(pins.bank, bank)
            context.set(pins.address, address)
            await context.tick()
            context.set(pins.command, Do.NOP)
            context.set(pins.drive, 0)
        await context.tick()
        found.append(context.get(chip.violation))

    simulator.add_testbench(drive)

    def first(*steps: Step) -> Violation:
        waiting.append(steps)
        if found:
            simulator.reset()
        simulator.run()
        return Violation(found[-1])

    return first


def begun(
    power: int = 10, pre: int = 2, refresh: int = 7, mode: int = 7, value: int = 0x20
) -> list[Step]:
    """The steps that initialise the chip."""
    return [
        *((power, Do.PRECHARGE, 0, ALL), (pre - 1, Do.REFRESH, 0, 0)),
        *((refresh - 1, Do.REFRESH, 0, 0), (mode - 1, Do.MODE, 0, value)),
    ]


def after(gap: int, command: int, bank: int = 0, address: int = 0) -> Step:
    return gap - 1, command, bank, address


OPEN = after(2, Do.ACTIVE)
BEGIN = begun()
LIMITS: dict[str, tuple[Callable[[int], list[Step]], int, Violation]] = {
    "power up": (lambda n: begun(power=n), 10, Violation.POWER_UP),
    "refresh after precharge": (lambda n: begun(pre=n), 2, Violation.PRECHARGE_TIME),
    "refresh after refresh": (lambda n: begun(refresh=n), 7, Violation.REFRESH_TIME),
    "mode after refresh": (lambda n: begun(mode=n), 7, Violation.REFRESH_TIME),
    "active after mode": (lambda n: [*BEGIN, after(n, Do.ACTIVE)], 2, Violation.MODE_TIME),
    "column": (lambda n: [*BEGIN, OPEN, after(n, Do.READ)], 2, Violation.ROW_TO_COLUMN),
    "write": (lambda n: [*BEGIN, OPEN, after(n, Do.WRITE)], 2, Violation.ROW_TO_COLUMN),
    "row to row": (lambda n: [*BEGIN, OPEN, after(n, Do.ACTIVE, 1)], 2, Violation.ROW_TO_ROW),
    "row time": (lambda n: [*BEGIN, OPEN, after(n, Do.PRECHARGE)], 5, Violation.ROW_TIME),
    "row time of all": (
        *(lambda n: [*BEGIN, OPEN, after(n, Do.PRECHARGE, 1, ALL)], 5, Violation.ROW_TIME),
    ),
    "row cycle": (
        lambda n: [*BEGIN, OPEN, after(5, Do.PRECHARGE), after(n - 5, Do.ACTIVE)],
        *(7, Violation.ROW_CYCLE),
    ),
    "active after precharge": (
        lambda n: [*BEGIN, OPEN, after(9, Do.PRECHARGE), after(n, Do.ACTIVE)],
        *(2, Violation.PRECHARGE_TIME),
    ),
    "write recovery": (
        lambda n: [*BEGIN, OPEN, after(9, Do.WRITE), after(n, Do.PRECHARGE)],
        *(2, Violation.WRITE_RECOVERY),
    ),
    "drive": (
        lambda n: [*BEGIN, OPEN, after(2, Do.READ), after(n, DRIVE)],
        *(3, Violation.CONTENTION),
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_cycle_less_than_required_is_a_violation(run: Run, name: str) -> None:
    steps, least, violation = LIMITS[name]
    assert run(*steps(least)) is Violation.NONE
    assert run(*steps(least - 1)) is violation


FAR = partial(after, 20)
FAULTS: dict[str, tuple[list[Step], Violation]] = {
    "a refresh too few": ([*begun()[:2], *begun()[3:], OPEN], Violation.NOT_INITIALISED),
    "no mode": ([*begun()[:3], FAR(Do.ACTIVE)], Violation.NOT_INITIALISED),
    "no precharge": ([FAR(Do.REFRESH), *begun()[2:], OPEN], Violation.NOT_INITIALISED),
    "precharge of one": (
        *([(10, Do.PRECHARGE, 0, 0), *begun()[1:], OPEN], Violation.NOT_INITIALISED),
    ),
    "another latency": (begun(value=0x30), Violation.MODE),
    "open twice": ([*BEGIN, OPEN, FAR(Do.ACTIVE)], Violation.ACTIVE_OPEN),
    "another bank": ([*BEGIN, OPEN, FAR(Do.READ, 1)], Violation.NO_ROW),
    "closed": ([*BEGIN, OPEN, FAR(Do.PRECHARGE), FAR(Do.WRITE)], Violation.NO_ROW),
    "all closed": ([*BEGIN, OPEN, FAR(Do.PRECHARGE, 3, ALL), FAR(Do.READ)], Violation.NO_ROW),
    "another closed": ([*BEGIN, OPEN, FAR(Do.PRECHARGE, 1), FAR(Do.READ)], Violation.NONE),
    "refresh": ([*BEGIN, OPEN, FAR(Do.REFRESH)], Violation.REFRESH_OPEN),
    "mode": ([*BEGIN, OPEN, FAR(Do.MODE, 0, 0x20)], Violation.REFRESH_OPEN),
    "and precharge": ([*BEGIN, OPEN, FAR(Do.READ, 0, ALL)], Violation.AUTO_PRECHARGE),
    "unknown": ([*BEGIN, FAR(0b100)], Violation.UNKNOWN),
    "the first of two": ([*BEGIN, FAR(0b100), FAR(Do.READ)], Violation.UNKNOWN),
    "in time": ([*BEGIN, after(73, Do.REFRESH), after(80, Do.REFRESH)], Violation.NONE),
    "late": ([*BEGIN, after(73, Do.REFRESH), after(82, Do.REFRESH)], Violation.REFRESH_LATE),
    "driven in the cycle after": (
        *([*BEGIN, OPEN, after(2, Do.READ), after(1, DRIVE)], Violation.CONTENTION),
    ),
    "another bank's row time": (
        *([*BEGIN, after(2, Do.ACTIVE, 1), FAR(Do.ACTIVE), after(2, Do.PRECHARGE, 1)],),
        Violation.NONE,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_commands_have_their_order(run: Run, name: str) -> None:
    steps, violation = FAULTS[name]
    assert run(*steps) is violation
