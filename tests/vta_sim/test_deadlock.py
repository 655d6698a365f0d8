"""Programs that can never end, and calls that cannot be."""

import pytest

from dovetail.isa.errors import DovetailError
from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.registers import ErrorCode
from dovetail.vta_sim.errors import SimulationError
from dovetail.vta_sim.machine import simulate

from .programs import PROGRAM, gemm, prepare, run, vector

GEMM, VECTOR = frozenset({Unit.GEMM}), frozenset({Unit.VECTOR})


def test_two_units_that_wait_for_each_other_are_named() -> None:
    program = (gemm(3, wait=VECTOR, post=VECTOR), vector(4, wait=GEMM, post=GEMM))
    with pytest.raises(SimulationError) as caught:
        run(*program)
    assert isinstance(caught.value, DovetailError)
    assert "GEMM instruction 0 waits for a token from VECTOR" in str(caught.value)
    assert "VECTOR instruction 1 waits for a token from GEMM" in str(caught.value)


def test_tokens_nobody_takes_are_named() -> None:
    with pytest.raises(
        SimulationError, match="GEMM instruction 3 waits for VECTOR to take a token"
    ):
        run(*[gemm(1, post=VECTOR)] * 4)


def test_instructions_behind_a_full_queue_are_counted() -> None:
    with pytest.raises(SimulationError, match="5 instructions wait behind a full queue"):
        run(*[gemm(1, wait=VECTOR)] * 8, vector(4, post=GEMM))


def test_a_watchdog_stops_a_deadlock() -> None:
    done = run(gemm(3, wait=VECTOR), watchdog=100)
    assert (done.error_code, done.error_index) == (ErrorCode.WATCHDOG, 0)
    # It fires in 100.
    assert done.counters["cycles"] == 102
    assert done.counters["gemm_stall_token"] == 100 - 30 + 1


def test_a_window_outside_dram_is_refused() -> None:
    with pytest.raises(SimulationError, match="window 0x0 to 0xffff; required within DRAM"):
        run(gemm(3), window=(0, 0xFFFF))


def test_a_program_address_that_is_no_multiple_is_refused() -> None:
    state = prepare([gemm(3)])
    with pytest.raises(SimulationError, match="multiple of 64"):
        simulate(state, PROGRAM + 8, 1, (0, len(state.dram) - 1))


def test_more_bursts_than_can_be_simulated_are_refused() -> None:
    load = Load(
        memory=Memory.ACT, sram_address=0, dram_address=0, count_x=1, count_y=4095, count_z=4095
    )
    with pytest.raises(SimulationError, match=r"instruction 0 has up to \d+ bursts"):
        run(load)


def test_an_instruction_too_long_to_simulate_is_refused_unless_a_watchdog_stops_it() -> None:
    endless = gemm(1, extent=(4095,) * 6)
    with pytest.raises(SimulationError, match=r"instruction 0 has \d+ iterations"):
        run(endless)
    assert run(endless, watchdog=1000).error_code == ErrorCode.WATCHDOG
