"""Purposes of a layer's cycles, by timelines whose answer is plain."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Gemm, Instruction, Load, Vector
from dovetail.isa.memories import Memory, Unit
from dovetail.runtime.profile.breakdown import Breakdown, break_down, bus_cycles
from dovetail.runtime.result import TimelineEntry

CONFIG = find_config("tiny")
"""16 products a cycle."""
FLAT = {"extent": (1, 1, 1, 1, 1), "source_stride": (0,) * 5, "destination_stride": (0,) * 4}
NEST = {f"{name}_stride": (0,) * 6 for name in ("act", "wgt", "acc")}
VECTOR = Vector(
    source=Memory.ACC, destination=Memory.ACT, source_address=0, destination_address=0, **FLAT
)


def load(post: tuple[Unit, ...] = ()) -> Instruction:
    return Load(memory=Memory.ACT, dram_address=0, sram_address=0, count_x=1, post=frozenset(post))


def gemm(wait: tuple[Unit, ...] = ()) -> Instruction:
    return Gemm(
        act_address=0, wgt_address=0, acc_address=0, extent=(1,) * 6, wait=frozenset(wait), **NEST
    )


def entry(
    index: int, unit: str, start: int, end: int, token: int = 0, bank: int = 0, fetch: int = 0
) -> TimelineEntry:
    queued = start - token - bank
    return TimelineEntry(index, unit, 0, queued, start, end, token, bank, fetch)


def test_each_cycle_has_its_cause() -> None:
    """LOAD to 40, for which GEMM waits; GEMM to 60; then VECTOR, 5 cycles late for a bank."""
    program = (load((Unit.GEMM,)), gemm((Unit.LOAD,)), VECTOR)
    timeline = (
        entry(0, "LOAD", 5, 40),
        entry(1, "GEMM", 41, 60, token=31, fetch=10),
        entry(2, "VECTOR", 65, 80, bank=5),
    )
    found = break_down(program, timeline, [10 * 16], CONFIG, 100)
    assert found == (
        Breakdown(useful=10, unfilled=9, vector=15, load=31, fetch=10, bank=5, other=20),
    )


def test_a_device_that_does_not_know_is_not_guessed_at() -> None:
    unknown = replace(entry(0, "GEMM", 60, 70, fetch=40), waited_token=None, waited_port=None)
    found = break_down((gemm(),), (unknown,), [0], CONFIG, 75)
    assert found == (Breakdown(unfilled=10, fetch=40, unknown=20, other=5),)


def test_a_token_that_was_long_there_is_not_what_was_waited_for() -> None:
    program = (load((Unit.GEMM,)), gemm((Unit.LOAD,)))
    timeline = (entry(0, "LOAD", 0, 10), entry(1, "GEMM", 60, 70, token=20, fetch=40))
    found = break_down(program, timeline, [0], CONFIG, 70)
    assert found == (Breakdown(unfilled=10, room=20, fetch=40),)


@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.integers(0, 1),
            st.integers(0, 40),
            st.integers(0, 40),
            st.tuples(*[st.integers(0, 30)] * 3),
        ),
        max_size=12,
    ),
    st.integers(0, 5000),
)
def test_the_causes_add_up(
    drawn: list[tuple[bool, int, int, int, tuple[int, int, int]]], macs: int
) -> None:
    program = [gemm() if product else VECTOR for product, *_ in drawn]
    timeline, now = [], 0
    for index, (product, layer, gap, length, (token, bank, fetch)) in enumerate(drawn):
        now += gap
        unit = "GEMM" if product else "VECTOR"
        timeline.append(
            TimelineEntry(index, unit, layer, now, now, now + length, token, bank, fetch)
        )
    cycles = now + 100
    found = break_down(program, tuple(timeline), [macs, macs], CONFIG, cycles)
    assert sum(each.cycles for each in found) == cycles
    assert min(getattr(each, field.name) for each in found for field in fields(each)) >= 0


def test_the_bus_is_at_work_for_whatever_layer() -> None:
    """256 bytes are 64 cycles of the bus, in the time of another layer; fetching takes 16 each."""
    long = replace(load(), count_x=64)
    program = (long, gemm())
    timeline = (
        TimelineEntry(0, "LOAD", 0, 100, 100, 300, 0, 0, 0),
        TimelineEntry(1, "GEMM", 1, 100, 100, 400, 0, 0, 0),
    )
    latency = CONFIG.dram.latency_cycles
    found = bus_cycles(program, timeline, 3, CONFIG, 500)
    assert latency + 32 <= 100
    # Until GEMM begins all is its layer's too; nobody is left after it but the last layer.
    assert found == (0, 2 * 16 + 64, 0)
