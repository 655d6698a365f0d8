"""Programs that the machine must stop: the simulator and the RTL stop alike, and nothing is written
after.
"""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.isa.config import INSTRUCTION_BYTES
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Load, Store
from dovetail.isa.registers import ErrorCode
from dovetail.isa.state import MachineState
from dovetail.vta_hw.simulate import RtlJob, run_programs
from dovetail.vta_sim.machine import simulate
from tests.differential.generate import DRAM_BASE, Case, generate

CASES = 25
CONFIG = find_config("tiny")


def _agree(cases: list[Case], states: list[MachineState], watchdogs: list[int]) -> list[int]:
    """Run every case on both; return the error codes."""
    jobs = [
        RtlJob(
            state,
            case.program_address,
            len(case.instructions),
            case.window,
            case.timing,
            watchdog,
            cycle_limit=1 << 20,
        )
        for case, state, watchdog in zip(cases, states, watchdogs, strict=True)
    ]
    codes = []
    for case, state, watchdog, rtl in zip(
        cases, states, watchdogs, run_programs(CONFIG, jobs), strict=True
    ):
        sim = simulate(
            state,
            case.program_address,
            len(case.instructions),
            case.window,
            case.timing,
            watchdog,
        )
        assert (sim.finished, sim.error_code, sim.error_index) == (
            rtl.finished,
            rtl.error_code,
            rtl.error_index,
        )
        assert sim.counters == rtl.counters
        for name in ("dispatched", "accepted", "ended"):
            np.testing.assert_array_equal(getattr(sim, name), getattr(rtl, name), err_msg=name)
        np.testing.assert_array_equal(sim.state.dram, rtl.state.dram)
        codes.append(sim.error_code)
    return codes


@pytest.mark.parametrize("seed", [1, 2])
def test_an_illegal_word_stops_both_at_its_index(seed: int) -> None:
    cases = [generate(CONFIG, 100 + seed, number) for number in range(CASES)]
    rng = np.random.default_rng(seed)
    states, expected = [], []
    for case in cases:
        state = case.initial()
        index = int(rng.integers(len(case.instructions)))
        start = case.program_address - DRAM_BASE + index * INSTRUCTION_BYTES
        state.dram[start : start + INSTRUCTION_BYTES] |= 0xF0
        states.append(state)
        expected.append(index)
    codes = _agree(cases, states, [50_000] * CASES)
    assert set(codes) == {ErrorCode.ILLEGAL_INSTRUCTION}


def test_an_access_out_of_the_window_stops_both_before_it_is_made() -> None:
    cases, rng = [], np.random.default_rng(3)
    for number in range(4 * CASES):
        case = generate(CONFIG, 200, number)
        places = [
            index
            for index, instruction in enumerate(case.instructions)
            if isinstance(instruction, Store)
            or (isinstance(instruction, Load) and instruction.words)
        ]
        if not places:
            continue
        index = int(rng.choice(places))
        moved = replace(case.instructions[index], dram_address=0x4000_0000)
        instructions = (*case.instructions[:index], moved, *case.instructions[index + 1 :])
        cases.append(replace(case, instructions=instructions))
    codes = _agree(cases, [case.initial() for case in cases], [50_000] * len(cases))
    assert set(codes) == {ErrorCode.WINDOW}


def test_a_watchdog_fires_in_both_in_the_same_cycle() -> None:
    cases = [generate(CONFIG, 300, number) for number in range(CASES)]
    watchdogs = [int(w) for w in np.random.default_rng(4).integers(20, 120, CASES)]
    codes = _agree(cases, [case.initial() for case in cases], watchdogs)
    assert ErrorCode.WATCHDOG in codes
