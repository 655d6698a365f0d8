"""The timeline of a run."""

from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory, Unit
from dovetail.vta_sim.trace import TraceEntry, Wait, trace

from .programs import TINY, gemm, run, vector


def test_an_entry_says_when_and_why() -> None:
    load = Load(memory=Memory.ACT, sram_address=0, count_x=4, post=frozenset({Unit.GEMM}))
    program = (
        load,
        gemm(100, wait=frozenset({Unit.LOAD}), acc_banks=1),
        vector(4, acc_banks=1),
    )
    entries = trace(run(*program), TINY)
    # The load's beats follow those of the third fetch, which come in 45 to 60.
    assert entries == (
        TraceEntry(0, Unit.LOAD, 28, 29, 30, 65, {Wait.FETCH: 30}),
        TraceEntry(
            *(1, Unit.GEMM, 44, 45, 81, 186), {Wait.FETCH: 46, Wait.TOKEN: 20, Wait.PORT: 15}
        ),
        TraceEntry(2, Unit.VECTOR, 60, 61, 62, 80, {Wait.FETCH: 62}),
    )


def test_the_reason_is_what_was_waited_for_longest() -> None:
    entries = trace(run(gemm(100, acc_banks=1), vector(4, acc_banks=1)), TINY)
    assert entries[1].waited == {Wait.FETCH: 46, Wait.PORT: 90}
    assert entries[1].reason is Wait.PORT


def test_an_instruction_that_is_there_in_time_waits_for_nothing() -> None:
    entries = trace(run(gemm(100), gemm(7)), TINY)
    assert entries[1].waited == {}
    assert entries[1].reason is Wait.NOTHING


def test_waiting_behind_a_full_queue_is_told_from_waiting_for_memory() -> None:
    entries = trace(run(*[gemm(300)] * 6, vector(4)), TINY)
    assert entries[6].reason is Wait.QUEUE


def test_a_stopped_run_has_entries_for_what_was_dispatched() -> None:
    entries = trace(run(gemm(3), bytes(64)), TINY)
    assert len(entries) == 1
