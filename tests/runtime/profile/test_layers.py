"""How the cycles of a run are shared out among its layers."""

from hypothesis import given
from hypothesis import strategies as st

from dovetail.isa.configs import find_config
from dovetail.runtime.accelerator.part import LayerFigures
from dovetail.runtime.profile.layers import profile_layers
from dovetail.runtime.profile.shares import share_cycles
from dovetail.runtime.profile.units import profile_units
from dovetail.runtime.result import RunResult, TimelineEntry

UNITS = ("load", "gemm", "vector", "store")
KINDS = ("busy", "stall_token", "stall_port")

Span = tuple[str, int, int, int]
"""Unit, layer, cycle in which the instruction is accepted, its last cycle."""


def cycles_of(spans: list[Span], cycles: int, count: int) -> list[int]:
    timeline = tuple(
        TimelineEntry(index, unit, layer, start, start, end, 0, 0, 0)
        for index, (unit, layer, start, end) in enumerate(spans)
    )
    result = RunResult({}, "sim", 0.0, 0.0, 0.0, cycles=cycles, timeline=timeline)
    layers = [LayerFigures("x", "y", macs=1000, dram_bytes=8) for _ in range(count)]
    figures = profile_layers(result, layers, find_config("tiny"))
    for each in figures:
        assert each.utilization == (1000 / 16 / each.cycles if each.cycles else 0)
    return [each.cycles for each in figures]


def test_gemm_comes_before_vector_and_waiting_counts_for_what_comes_next() -> None:
    spans = [
        ("LOAD", 0, 0, 10),
        ("GEMM", 0, 10, 30),
        ("VECTOR", 0, 28, 50),
        ("GEMM", 1, 35, 45),
        ("VECTOR", 1, 60, 70),
        ("STORE", 1, 70, 75),
    ]
    # Layer 0: 0 to 35 and, its vector work, 45 to 50.  Layer 1: 35 to 45 and 50 to the end.
    assert cycles_of(spans, 80, 2) == [40, 40]


def test_instructions_that_overlap_in_a_pipeline_count_once() -> None:
    spans = [("GEMM", 0, 0, 25), ("GEMM", 1, 20, 45), ("GEMM", 0, 40, 65)]
    assert cycles_of(spans, 65, 2) == [45, 20]


def test_cycles_after_the_work_of_a_program_are_of_its_last_layer() -> None:
    timeline = tuple(
        TimelineEntry(index, unit, layer, start, start, end, 0, 0, 0)
        for index, (unit, layer, start, end) in enumerate(
            [("GEMM", 0, 10, 30), ("STORE", 0, 30, 60), ("GEMM", 2, 90, 95)]
        )
    )
    # The first program has layers 0 and 1, and ends after 70 cycles.
    assert share_cycles(timeline, 3, 100, ends=((70, 1),)) == [30, 40, 30]


def test_waits_of_load_behind_its_own_work_are_not_counted_twice() -> None:
    """The second LOAD waits for 8 cycles, in 5 of which the first one is still at work."""
    entries = (
        TimelineEntry(0, "LOAD", 0, 0, 0, 15, 0, 0, 0),
        TimelineEntry(1, "LOAD", 0, 10, 19, 30, 8, 0, 0),
    )
    counters = {f"{unit}_{kind}": 0 for unit in UNITS for kind in KINDS}
    counters |= {"load_busy": 26, "load_stall_token": 8}
    result = RunResult({}, "sim", 0, 0, 0, cycles=32, counters=counters, timeline=entries)
    load, gemm, *_ = profile_units(result)
    assert (load.busy, load.token, load.bank, load.idle) == (26, 3, 0, 3)
    assert gemm.idle == 32


def test_a_layer_that_only_moves_gets_nothing() -> None:
    assert cycles_of([("LOAD", 1, 0, 9), ("VECTOR", 0, 9, 20)], 30, 3) == [20, 0, 10]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["LOAD", "GEMM", "VECTOR", "STORE"]),
            st.integers(0, 3),
            st.integers(0, 100),
            st.integers(1, 40),
        )
    )
)
def test_the_cycles_add_up(drawn: list[tuple[str, int, int, int]]) -> None:
    spans = [(unit, layer, start, start + length) for unit, layer, start, length in drawn]
    found = cycles_of(spans, 200, 4)
    assert sum(found) == 200
    assert min(found) >= 0


@given(st.lists(st.sampled_from(("a", "b", "a (2)", "a (3)", "a (2) (2)")), max_size=8))
def test_no_two_layers_share_a_name(names: list[str]) -> None:
    entries = tuple(TimelineEntry(0, "GEMM", n, 0, n, n, 0, 0, 0) for n in range(len(names)))
    result = RunResult({}, "sim", 0.0, 0.0, 0.0, cycles=10, timeline=entries)
    layers = [LayerFigures(name, "y", macs=1, dram_bytes=8) for name in ("first", *names)]
    found = [each.name for each in profile_layers(result, layers, find_config("tiny"))]
    assert len(set(found)) == len(found)
    for layer, name in zip(layers, found, strict=True):
        assert name.startswith(layer.name)
