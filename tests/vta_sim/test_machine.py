"""Cycles worked out by hand from docs/timing.md, on ``tiny``.

An instruction is a burst of 16 beats.  The first one is taken in cycle 0 and accepted by the memory
in 1; its beats come in 13 to 28, it is dispatched in 29 and can be accepted in 30.  The second is
taken in 2; its beats come in 29 to 44, and it can be accepted in 46.
"""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.isa.encoding import encode
from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.registers import ErrorCode

from .programs import PROGRAM, TIMING, TINY, gemm, run, vector


def test_one_gemm() -> None:
    done = run(gemm(3))
    assert (done.fetched[0], done.dispatched[0], done.accepted[0]) == (28, 29, 30)
    assert done.ended[0] == 30 + 3 + 5
    # The machine finds itself empty in 39.
    assert done.counters["cycles"] == 40
    assert done.counters["gemm_busy"] == 3
    assert done.counters["fetch_beats"] == 16
    assert done.counters["instructions"] == 1
    assert done.finished


def test_no_instructions() -> None:
    done = run()
    assert done.finished
    assert done.counters["cycles"] == 1


def test_a_long_gemm_is_followed_without_a_bubble() -> None:
    done = run(gemm(100), gemm(7))
    np.testing.assert_array_equal(done.accepted, [30, 130])
    np.testing.assert_array_equal(done.ended, [135, 130 + 7 + 5])
    assert done.counters["gemm_busy"] == 107


def test_a_short_gemm_waits_for_the_fetch_of_the_next() -> None:
    done = run(gemm(3), gemm(7))
    np.testing.assert_array_equal(done.dispatched, [29, 45])
    np.testing.assert_array_equal(done.accepted, [30, 46])
    assert done.counters["cycles"] == 46 + 7 + 5 + 2


def test_a_load() -> None:
    # Taken in 31, accepted in 32, beats in 44 to 47, the last word written in 48.
    done = run(Load(memory=Memory.ACT, sram_address=0, count_x=4))
    assert done.ended[0] == 48
    assert done.counters["load_busy"] == 18
    assert done.counters["load_beats"] == 4


def test_a_load_of_two_bursts() -> None:
    # 20 words from byte 32 are cut at 64: 8 beats in 44 to 51, then 12 in 52 to 63.
    done = run(Load(memory=Memory.ACT, sram_address=0, dram_address=32, count_x=20))
    assert done.ended[0] == 64
    assert done.counters["load_beats"] == 20


def test_padding_is_written_before_the_data_comes() -> None:
    load = Load(memory=Memory.ACT, sram_address=0, count_x=4, pad_x_before=1)
    assert run(load).ended[0] == 48
    # 10 cells by 3 rows are visited in 31 to 64 less the 4 cycles in which a word is written.
    assert run(replace(load, pad_x_after=5, pad_y_after=2)).ended[0] == 64


def test_a_fill_visits_its_cells_and_no_more() -> None:
    assert run(Load(memory=Memory.ACT, sram_address=0, count_x=0, pad_x_before=3)).ended[0] == 33


def test_the_next_load_asks_while_data_arrives() -> None:
    # The first one's burst is accepted in 32, its beats come after the second fetch, in 45 to 48;
    # the second LOAD is accepted in 46, its burst in 48: beats in 60 to 63.
    loads = [Load(memory=Memory.ACT, sram_address=16 * n, count_x=4) for n in range(2)]
    done = run(*loads)
    np.testing.assert_array_equal(done.accepted, [30, 46])
    np.testing.assert_array_equal(done.ended, [49, 64])
    # It works from 31 to 64, cycles of two counted once.
    assert done.counters["load_busy"] == 34
    alone = run(*loads, config=replace(TINY, load_ahead=False))
    np.testing.assert_array_equal(alone.accepted, [30, 50])
    np.testing.assert_array_equal(alone.ended, [49, 68])
    assert alone.counters["load_busy"] == 19 + 18


def test_the_data_of_two_loads_comes_without_a_gap() -> None:
    # 64 beats from 45 on; the second LOAD's 4 follow at once, and it ends a cycle after the last.
    done = run(*(Load(memory=Memory.ACT, sram_address=0, count_x=count) for count in (64, 4)))
    np.testing.assert_array_equal(done.ended, [45 + 64, 45 + 68])
    assert done.accepted[1] < done.ended[0] - TIMING.latency_cycles


def test_a_third_load_waits_for_the_first_ones_data() -> None:
    loads = (Load(memory=Memory.ACT, sram_address=0, count_x=count) for count in (200, 4, 4))
    done = run(*loads)
    # The first one's last beat comes in the cycle before its end, the third is accepted then.
    assert done.accepted[1] < done.accepted[2] == done.ended[0]


def test_the_next_load_waits_for_the_cells_of_the_one_before() -> None:
    padded = Load(memory=Memory.ACT, sram_address=0, count_x=4, pad_x_before=200)
    done = run(padded, Load(memory=Memory.ACT, sram_address=300, count_x=4))
    # 204 cells from 31 on, but for 4 words written.
    np.testing.assert_array_equal(done.ended[0], 30 + 208)
    assert done.accepted[1] == done.ended[0] + 1


def test_cells_of_the_next_load_come_after_the_last_word() -> None:
    first = Load(memory=Memory.ACT, sram_address=0, count_x=100)
    fill = Load(memory=Memory.ACT, sram_address=0, count_x=0, pad_x_before=7)
    done = run(first, fill)
    assert done.accepted[1] < done.ended[0]
    assert done.ended[1] == done.ended[0] + 7


def test_windows_of_rows_are_loaded_alone() -> None:
    plain = Load(memory=Memory.ACT, sram_address=0, count_x=64)
    windows = replace(plain, step=8, count_x=30, row_end=300)
    done = run(plain, windows, plain)
    np.testing.assert_array_equal(done.accepted[1:], done.ended[:2] + 1)


def test_a_store() -> None:
    # Words are read in 31 to 34, the burst is offered and taken in 36, accepted in 37, its beats
    # move in 49 to 52, and the response comes in 56.
    done = run(Store(dram_address=0, sram_address=0, count_x=4))
    assert done.ended[0] == 56
    assert done.counters["store_busy"] == 26
    assert done.counters["store_beats"] == 4


def test_writes_after_reads_turn_the_memory_round() -> None:
    # With latency 1: fetched in 2 to 17, accepted in 19, taken in 25, accepted in 26; a first beat
    # could come in 27, but 17 + 1 + 20 is later.
    timing = replace(TIMING, latency_cycles=1, turnaround_cycles=20)
    done = run(Store(dram_address=0, sram_address=0, count_x=4), timing=timing)
    assert done.ended[0] == 38 + 3 + 4


def test_store_slots_are_reused() -> None:
    # 2 slots, 3 bursts of 16 words.  Filled from 31 and 47; taken in 48 and 64, the second as soon
    # as it is full; beats in 61 to 76 and 77 to 92.  The third is filled from 77, offered in 94.
    config = replace(TINY, store_slots=2)
    done = run(Store(dram_address=0, sram_address=0, count_x=48), config=config)
    # Taken in 94, accepted in 95, beats in 107 to 122, answered in 126.
    assert done.ended[0] == 126


def test_a_token_orders_two_units() -> None:
    # The load's beats follow those of the second fetch: 45 to 48; it ends in 49.
    load = Load(memory=Memory.ACT, sram_address=0, count_x=4, post=frozenset({Unit.GEMM}))
    done = run(load, gemm(3, wait=frozenset({Unit.LOAD})))
    np.testing.assert_array_equal(done.ended, [49, 50 + 3 + 5])
    assert done.accepted[1] == 50
    assert done.counters["gemm_stall_token"] == 4
    assert done.waited_token[1] == 4


def test_a_bank_orders_two_units() -> None:
    # The vector could start in 46; the gemm holds the bank to 135.
    done = run(gemm(100, acc_banks=1), vector(4, acc_banks=1))
    np.testing.assert_array_equal(done.ended, [135, 136 + 4 + 14])
    assert done.accepted[1] == 136
    assert done.counters["vector_stall_port"] == 90
    assert done.waited_port[1] == 90


def test_a_vector_waits_for_what_an_earlier_one_writes() -> None:
    first = vector(20, act_write_banks=1)
    second = vector(5, source=Memory.ACT, act_read_banks=1)
    done = run(first, second)
    # Without the bank it would be accepted in 50, in the first one's last issue cycle.
    np.testing.assert_array_equal(done.accepted, [30, 30 + 20 + 14 + 1])
    assert done.waited_port[1] == 15


def test_a_poster_without_credit_waits() -> None:
    config = replace(TINY, token_max=1)
    post = frozenset({Unit.VECTOR})
    waits = vector(4, wait=frozenset({Unit.GEMM}))
    done = run(gemm(200, post=post), gemm(3, post=post), waits, waits, config=config)
    # The first vector takes the token in 236, so its credit is there in 237.
    np.testing.assert_array_equal(done.accepted[:3], [30, 237, 236])
    assert done.waited_token[1] == 237 - 230


def test_a_full_queue_holds_up_what_is_behind() -> None:
    config = replace(TINY, queue_depth=2, fetch_ahead=16)
    load = Load(memory=Memory.ACT, sram_address=0, count_x=0, pad_x_before=1)
    done = run(*[gemm(500)] * 4, load, config=config)
    # The first is popped in 30; the next two fill the queue; the fourth enters after a pop in 530.
    np.testing.assert_array_equal(done.dispatched, [29, 45, 61, 531, 532])


def test_the_window_stops_a_load_before_its_burst() -> None:
    done = run(Load(memory=Memory.ACT, sram_address=0, dram_address=0x8000))
    assert not done.finished
    assert (done.error_code, done.error_index) == (ErrorCode.WINDOW, 0)
    # Accepted in 30, refused in 31; the run ends in 32.
    assert done.counters["cycles"] == 33
    assert done.ended[0] == -1


def test_the_window_stops_a_fetch() -> None:
    done = run(gemm(3), gemm(3), window=(0, PROGRAM + 100))
    assert (done.error_code, done.error_index) == (ErrorCode.WINDOW, 1)
    # Refused in 2, while the first instruction is on its way.
    assert done.counters["cycles"] == 30
    assert done.counters["instructions"] == 0


def test_an_illegal_instruction_stops_at_its_dispatch() -> None:
    done = run(b"\xff" * 64)
    assert (done.error_code, done.error_index) == (ErrorCode.ILLEGAL_INSTRUCTION, 0)
    assert done.counters["cycles"] == 31
    assert done.dispatched[0] == -1


def test_the_watchdog_names_the_next_instruction_when_there_is_none() -> None:
    done = run(gemm(3), watchdog=10)
    assert (done.error_code, done.error_index) == (ErrorCode.WATCHDOG, 0)
    # It fires in 10; the fetch is answered in 28.
    assert done.counters["cycles"] == 30


def test_the_watchdog_waits_anew_after_every_end() -> None:
    # The first end is in 38: a watchdog of 38 fires in that very cycle.
    assert run(gemm(3), gemm(3), watchdog=39).finished
    assert not run(gemm(3), gemm(3), watchdog=38).finished
    done = run(gemm(3), gemm(200), watchdog=40)
    assert (done.error_code, done.error_index) == (ErrorCode.WATCHDOG, 1)
    assert done.counters["cycles"] == 38 + 1 + 40 + 2


def test_a_stop_leaves_dram_as_far_as_it_was_written() -> None:
    # The second instruction is illegal: the run stops in 45, before the store's first beat in 51.
    store = Store(dram_address=0, sram_address=0, count_x=4)
    before = run(gemm(3)).state.dram[:16].copy()
    done = run(store, bytes(64))
    assert done.error_index == 1
    np.testing.assert_array_equal(done.state.dram[4:16], before[4:16])
    # The first beat was on offer.
    np.testing.assert_array_equal(done.state.dram[:4], done.state.act[0].view(np.uint8))
    assert done.counters["store_beats"] == 4


@pytest.mark.parametrize("junk", [encode(gemm(1))[:63] + b"\x80", bytes(64)])
def test_words_that_are_no_instruction_are_refused(junk: bytes) -> None:
    assert run(junk).error_code == ErrorCode.ILLEGAL_INSTRUCTION
