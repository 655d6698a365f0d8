"""Programs on the Verilated accelerator with its DRAM model: results, times, counters, errors."""

import struct
from dataclasses import replace

import numpy as np
import pytest

from dovetail.isa import semantics
from dovetail.isa.config import DramTiming
from dovetail.isa.configs import find_config
from dovetail.isa.encoding import encode
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Gemm, Instruction, Load, Store, Vector
from dovetail.isa.latency import compute_latency
from dovetail.isa.launch import Launch, LaunchResult
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.registers import ErrorCode
from dovetail.isa.state import MachineState
from dovetail.vta_hw.device import RtlDevice
from dovetail.vta_hw.simulate import RtlJob, run_program, run_programs
from dovetail.vta_hw.verilog import HardwareError

CONFIG = find_config("tiny")
BASE = 0x10000
PROGRAM = BASE + 0x8000
SIZE = 1 << 16
WINDOW = (BASE, BASE + SIZE - 1)
TIMING = DramTiming(latency_cycles=20, queue_bursts=4, turnaround_cycles=3, response_cycles=7)

GEMM_TILES = 6
PROGRAM_UNITS = (
    Load(memory=Memory.ACT, sram_address=0, dram_address=BASE, count_x=24, count_y=2,
         dram_stride_y=0x100, sram_stride_y=26, pad_x_before=1, pad_x_after=1, pad_value=-3),
    Load(memory=Memory.WGT, sram_address=4, dram_address=BASE + 0x400, count_x=3,
         post=frozenset({Unit.GEMM})),
    Gemm(act_address=0, wgt_address=4, acc_address=9, extent=(3, 2, 1, 1, 1, 1),
         act_stride=(1, 26, 0, 0, 0, 0), wgt_stride=(1, 0, 0, 0, 0, 0),
         acc_stride=(0, 1, 0, 0, 0, 0), reduction=1,
         wait=frozenset({Unit.LOAD}), post=frozenset({Unit.VECTOR})),
    Vector(source=Memory.ACC, destination=Memory.ACT, source_address=9, destination_address=512,
           extent=(1, 2, 1, 1, 1), source_stride=(0, 1, 0, 0, 0), destination_stride=(1, 0, 0, 0),
           wait=frozenset({Unit.GEMM}), post=frozenset({Unit.STORE})),
    Store(dram_address=BASE + 0x1000, sram_address=512, count_x=2,
          wait=frozenset({Unit.VECTOR})),
)  # fmt: skip


def image(seed: int = 1) -> np.ndarray:
    """DRAM of random bytes."""
    return np.random.default_rng(seed).integers(0, 256, SIZE).astype(np.uint8)


def code(program: tuple[Instruction, ...]) -> bytes:
    """``program`` with its bank masks, encoded."""
    return b"".join(encode(with_bank_masks(instruction, CONFIG)) for instruction in program)


def test_a_program_leaves_every_memory_as_the_semantics_say() -> None:
    before = MachineState.zeros(CONFIG, image(), BASE)
    rng = np.random.default_rng(2)
    for memory in Memory:
        shape = (CONFIG.depth(memory), CONFIG.word_bytes(memory))
        words = rng.integers(0, 256, shape).astype(np.uint8)
        before.write_words(memory, np.arange(shape[0]), words)
    program = code(PROGRAM_UNITS)
    result = run_program(
        CONFIG, program, before.dram, BASE, PROGRAM, WINDOW, initial=before, dump=True
    )
    assert result.finished
    start = PROGRAM - BASE
    before.dram[start : start + len(program)] = np.frombuffer(program, np.uint8)
    for instruction in PROGRAM_UNITS:
        semantics.execute(before, instruction)
    assert np.array_equal(result.state.dram, before.dram)
    for memory in Memory:
        assert np.array_equal(result.state.words(memory), before.words(memory)), memory


def test_times_and_counters_are_those_of_the_rules() -> None:
    result = run_program(CONFIG, code(PROGRAM_UNITS), image(), BASE, PROGRAM, WINDOW, timing=TIMING)
    # FETCH asks in cycle 0, AR is accepted in 1, and an instruction is 16 beats of 4 bytes, back to
    # back.
    arrivals = 1 + TIMING.latency_cycles + 16 * np.arange(1, 6)
    assert result.dispatched[0] == arrivals[0]
    load, weights, gemm, vector, store = range(5)
    assert result.accepted[load] == result.dispatched[load] + 1
    # The memory has room for the last of the load's four bursts when all instructions have come.
    assert result.accepted[weights] == arrivals[4] + 1
    assert result.ended[load] == arrivals[4] + 2 * 24
    assert result.accepted[gemm] == result.ended[weights] + 1
    assert (
        result.ended[gemm]
        == result.accepted[gemm] + GEMM_TILES + compute_latency(CONFIG)[Unit.GEMM]
    )
    assert (
        result.ended[vector] == result.accepted[vector] + 2 + compute_latency(CONFIG)[Unit.VECTOR]
    )
    # Two words: read in a + 1 and a + 2, offered from a + 4, taken then, accepted a cycle later.
    first_beat = result.accepted[store] + 5 + TIMING.latency_cycles
    assert result.ended[store] == first_beat + 1 + TIMING.response_cycles
    expected = {
        "cycles": result.ended[store] + 2,
        "instructions": 5,
        "gemm_busy": GEMM_TILES,
        "vector_busy": 2,
        "store_busy": result.ended[store] - result.accepted[store],
        "load_busy": result.ended[weights] - result.accepted[load],
        "gemm_stall_token": result.accepted[gemm] - result.dispatched[gemm] - 1,
        "vector_stall_token": result.accepted[vector] - result.dispatched[vector] - 1,
        "store_stall_token": result.accepted[store] - result.dispatched[store] - 1,
        "load_stall_port": 0,
        "fetch_beats": 5 * 16,
        "load_beats": 2 * 24 + 3 * 4,
        "store_beats": 2,
    }  # fmt: skip
    assert {name: result.counters[name] for name in expected} == expected


def test_jobs_of_a_batch_do_not_touch_each_other() -> None:
    rng = np.random.default_rng(3)
    jobs = []
    for seed in range(20):
        state = MachineState.zeros(CONFIG, image(seed), BASE)
        program = np.frombuffer(code(PROGRAM_UNITS), np.uint8)
        state.dram[PROGRAM - BASE : PROGRAM - BASE + len(program)] = program
        timing = DramTiming(latency_cycles=int(rng.integers(1, 60)))
        jobs.append(RtlJob(state, PROGRAM, len(PROGRAM_UNITS), WINDOW, timing))
    together = run_programs(CONFIG, jobs)
    for place in (0, 7, 19):
        alone = run_programs(CONFIG, [jobs[place]])[0]
        assert alone.counters == together[place].counters
        assert np.array_equal(alone.state.dram, together[place].state.dram)
        assert np.array_equal(alone.ended, together[place].ended)


@pytest.mark.parametrize(
    ("place", "found", "expected"),
    [
        (4, replace(PROGRAM_UNITS[4], dram_address=BASE + SIZE), (ErrorCode.WINDOW, 4)),
        (1, replace(PROGRAM_UNITS[1], dram_address=0), (ErrorCode.WINDOW, 1)),
        (3, replace(PROGRAM_UNITS[3], wait=frozenset({Unit.STORE})), (ErrorCode.WATCHDOG, 3)),
    ],
)
def test_an_error_is_reported_and_nothing_is_stored(
    place: int, found: Instruction, expected: tuple[int, int]
) -> None:
    program = (*PROGRAM_UNITS[:place], found, *PROGRAM_UNITS[place + 1 :])
    dram = image()
    result = run_program(CONFIG, code(program), dram, BASE, PROGRAM, WINDOW, watchdog=1000)
    assert not result.finished
    assert (result.error_code, result.error_index) == expected
    assert result.ended[4] == -1
    stored = slice(0x1000, 0x1008)
    assert np.array_equal(result.state.dram[stored], dram[stored])


def test_an_illegal_word_stops_the_run_at_its_index() -> None:
    program = bytearray(code(PROGRAM_UNITS))
    program[2 * 64 : 2 * 64 + 4] = struct.pack("<I", 0xFFFFFFFF)
    result = run_program(CONFIG, bytes(program), image(), BASE, PROGRAM, WINDOW)
    assert (result.error_code, result.error_index) == (ErrorCode.ILLEGAL_INSTRUCTION, 2)


def test_a_run_is_given_up_at_the_cycle_limit() -> None:
    state = MachineState.zeros(CONFIG, image(), BASE)
    program = np.frombuffer(code(PROGRAM_UNITS), np.uint8)
    state.dram[PROGRAM - BASE : PROGRAM - BASE + len(program)] = program
    job = RtlJob(state, PROGRAM, len(PROGRAM_UNITS), WINDOW, cycle_limit=50)
    result = run_programs(CONFIG, [job])[0]
    assert not result.finished
    assert result.error_code == ErrorCode.NONE
    assert result.counters["cycles"] < 80


def test_a_program_outside_memory_is_refused() -> None:
    with pytest.raises(HardwareError, match=r"within 0x10000 to 0x1ffff"):
        run_program(CONFIG, code(PROGRAM_UNITS), image(), BASE, BASE + SIZE - 64, WINDOW)


def test_the_device_gives_what_the_runtime_asks_for() -> None:
    dram = np.zeros(1 << 12, np.uint8)
    program = (
        Load(memory=Memory.ACT, sram_address=0, dram_address=0x400, post=frozenset({Unit.STORE})),
        Store(dram_address=0x800, sram_address=0, wait=frozenset({Unit.LOAD})),
    )
    words = np.frombuffer(code(program), np.uint8)
    dram[: len(words)] = words
    dram[0x400:0x404] = (1, 2, 3, 4)
    before = dram.copy()
    result: LaunchResult = RtlDevice().run(Launch(CONFIG, dram, 0, 2))
    assert result.finished
    assert np.array_equal(dram, before), "the launch was changed"
    assert list(result.dram[0x800:0x804]) == [1, 2, 3, 4]
    assert result.counters["cycles"] == result.ended[1] + 2
