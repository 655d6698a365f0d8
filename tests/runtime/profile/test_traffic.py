"""Bytes and words over time, against sums that are known."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Gemm, Load, Store, Vector
from dovetail.isa.memories import Memory
from dovetail.runtime.profile.occupancy import occupancy
from dovetail.runtime.profile.traffic import dram_traffic
from dovetail.runtime.result import TimelineEntry

CONFIG = find_config("tiny")
LOAD = Load(memory=Memory.ACT, dram_address=0, sram_address=0, count_x=64)
STORE = Store(dram_address=0, sram_address=0, count_x=32)


def entry(index: int, unit: str, start: int, end: int) -> TimelineEntry:
    return TimelineEntry(index, unit, 0, max(start - 5, 0), start, end, 0, 0, 0)


@pytest.mark.parametrize("bins", [1, 7, 100, 1000])
def test_the_bytes_of_all_bins_are_those_moved(bins: int) -> None:
    timeline = (entry(0, "LOAD", 100, 300), entry(1, "STORE", 310, 311))
    found = dram_traffic((LOAD, STORE), timeline, CONFIG, 1000, bins)
    width = 1000 / bins
    word = CONFIG.word_bytes(Memory.ACT)
    assert found["load"].sum() * width == pytest.approx(64 * word)
    assert found["store"].sum() * width == pytest.approx(32 * word)
    assert found["fetch"].sum() * width == pytest.approx(2 * 64)


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 900), st.integers(0, 200)), max_size=30),
    st.integers(1, 1000),
    st.integers(1, 3),
)
def test_the_bus_carries_no_more_than_its_width(
    spans: list[tuple[bool, int, int]], bins: int, interval: int
) -> None:
    """Whatever the timeline says, of instructions that could never have run so too."""
    config = replace(CONFIG, dram=replace(CONFIG.dram, beat_interval_cycles=interval))
    program = [LOAD if load else STORE for load, _, _ in spans]
    timeline = tuple(
        entry(index, program[index].unit.name, start, start + length)
        for index, (_, start, length) in enumerate(spans)
    )
    # As long as the bus needs at the least, or longer.
    cycles = max(1101, 30 * interval * (64 + 256) // config.bus_bytes)
    found = dram_traffic(program, timeline, config, cycles, bins)
    together = sum(found.values())
    assert together.max() <= config.bus_bytes / interval * (1 + 1e-9)
    moved = sum(256 if load else 128 for load, _, _ in spans) + 64 * len(spans)
    assert together.sum() * cycles / bins == pytest.approx(moved)


def test_words_are_in_use_from_their_write_to_their_last_read() -> None:
    timeline = (entry(0, "LOAD", 100, 199), entry(1, "STORE", 500, 599))
    found = occupancy((LOAD, STORE), timeline, CONFIG, 1000, 10)[Memory.ACT]
    # Only the 32 words that are stored were of use.
    expected = np.zeros(10)
    expected[1:6] = np.array([0.01, 1, 1, 1, 0.99]) * 32 / CONFIG.depth(Memory.ACT)
    assert np.allclose(found, expected)


def test_words_that_are_written_again_are_in_use_twice() -> None:
    program = (LOAD, STORE, LOAD, STORE)
    timeline = (
        entry(0, "LOAD", 0, 99),
        entry(1, "STORE", 100, 199),
        entry(2, "LOAD", 600, 699),
        entry(3, "STORE", 700, 799),
    )
    found = occupancy(program, timeline, CONFIG, 1000, 10)[Memory.ACT]
    assert list(np.flatnonzero(found)) == [0, 1, 6, 7]


def test_sums_are_in_use_from_the_gemm_that_begins_them() -> None:
    """One GEMM begins a sum, a second adds to it, VECTOR reads it; then another one begins."""
    nest = {"act_stride": (0,) * 6, "wgt_stride": (0,) * 6, "acc_stride": (1, 0, 0, 0, 0, 0)}
    begin = Gemm(act_address=0, wgt_address=0, acc_address=0, extent=(8, 1, 1, 1, 1, 1), **nest)
    read = Vector(
        source=Memory.ACC,
        destination=Memory.ACT,
        source_address=0,
        destination_address=0,
        extent=(1, 8, 1, 1, 1),
        source_stride=(0, 1, 0, 0, 0),
        destination_stride=(1, 0, 0, 0),
    )
    program = (begin, replace(begin, accumulate=True), read) * 2
    timeline = tuple(
        entry(index, unit, start, start + 99)
        for index, (unit, start) in enumerate(
            zip(("GEMM", "GEMM", "VECTOR") * 2, (1, 201, 301, 501, 601, 701), strict=True)
        )
    )
    found = occupancy(program, timeline, CONFIG, 1000, 10)[Memory.ACC]
    expected = np.zeros(10)
    expected[[1, 2, 3, 6, 7]] = 8 / CONFIG.depth(Memory.ACC)
    assert np.allclose(found, expected)
