"""The event-driven simulator against the stepped reference: every cycle, counter and byte."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.memories import Memory
from dovetail.isa.registers import ErrorCode
from dovetail.isa.state import MachineState
from dovetail.vta_sim.machine import SimResult, simulate
from tests.differential.generate import DRAM_BASE, Case, generate

from .reference import Reference

CYCLES = ("dispatched", "accepted", "ended", "waited_token", "waited_port")


def small_config(rng: np.random.Generator) -> HardwareConfig:
    """``tiny`` with other queues, limits, banks and pipelines."""
    return replace(
        find_config("tiny"),
        name="small",
        queue_depth=int(rng.choice([2, 4, 16])),
        fetch_ahead=int(rng.choice([2, 4, 16])),
        burst_beats=int(rng.choice([16, 32, 256])),
        store_slots=int(rng.choice([2, 4, 16])),
        token_max=int(rng.choice([1, 2, 15])),
        act_banks=int(rng.choice([1, 2, 8])),
        acc_banks=int(rng.choice([1, 2, 4])),
        tile_cycles=int(rng.choice([1, 2])),
        vector_cycles=int(rng.choice([1, 2, 4])),
        deep_pipelines=bool(rng.integers(0, 2)),
        load_ahead=bool(rng.integers(0, 4)),
    )


def compare(
    case: Case, state: MachineState, window: tuple[int, int], watchdog: int | None = None
) -> SimResult:
    """Run both; they must agree, on the scratchpads only where the run was not stopped."""
    other = MachineState.zeros(case.config, state.dram.copy(), state.dram_base)
    for memory in Memory:
        words = state.words(memory)
        other.write_words(memory, np.arange(len(words)), words)
    # The stepped reference has no SDRAM; that is compared with the RTL.
    timing = replace(case.timing, sdram=None)
    settings = (
        *(case.program_address, len(case.instructions), window, timing),
        case.watchdog if watchdog is None else watchdog,
    )
    expected = Reference(other, *settings).run()
    found = simulate(state, *settings)
    for name in ("finished", "error_code", "error_index", "counters"):
        assert getattr(found, name) == getattr(expected, name)
    for name in CYCLES:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    np.testing.assert_array_equal(found.state.dram, expected.state.dram)
    for memory in Memory if found.finished else ():
        np.testing.assert_array_equal(found.state.words(memory), expected.state.words(memory))
    return found


@pytest.mark.parametrize("name", ["tiny", "zynq7020", "ecp5_85", "large"])
def test_random_programs(name: str) -> None:
    for number in range(8):
        case = generate(find_config(name), 20, number)
        assert compare(case, case.initial(), case.window).finished


def test_random_programs_on_random_configurations() -> None:
    rng = np.random.default_rng(21)
    for number in range(10):
        case = generate(small_config(rng), 21, number)
        assert compare(case, case.initial(), case.window).finished


def test_an_illegal_word_anywhere() -> None:
    rng = np.random.default_rng(22)
    for number in range(10):
        case = generate(find_config("tiny"), 22, number)
        state = case.initial()
        index = int(rng.integers(len(case.instructions)))
        start = case.program_address - DRAM_BASE + index * INSTRUCTION_BYTES
        state.dram[start] |= 0xF
        found = compare(case, state, case.window)
        assert (found.error_code, found.error_index) == (ErrorCode.ILLEGAL_INSTRUCTION, index)


def test_a_window_that_is_too_small() -> None:
    rng = np.random.default_rng(23)
    codes = set()
    for number in range(14):
        case = generate(find_config("tiny"), 23, number)
        base, limit = case.window
        if number % 2:
            base += int(rng.integers(4000))
        else:
            limit -= int(rng.integers(6000))
        codes.add(compare(case, case.initial(), (base, limit)).error_code)
    assert ErrorCode.WINDOW in codes


def test_a_watchdog_that_is_short() -> None:
    rng = np.random.default_rng(24)
    codes = set()
    for number in range(14):
        case = generate(find_config("tiny"), 24, number)
        watchdog = int(rng.integers(5, 2000))
        codes.add(compare(case, case.initial(), case.window, watchdog).error_code)
    assert codes == {ErrorCode.NONE, ErrorCode.WATCHDOG}
