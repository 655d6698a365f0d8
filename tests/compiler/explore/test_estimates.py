"""Energy and clock: worked by hand."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dovetail.compiler.explore.clock import ASSUMED_HZ, estimate_clock
from dovetail.compiler.explore.energy import estimate_energy
from dovetail.compiler.explore.evaluate import Performance
from dovetail.isa.configs import find_config

IDLE = dict.fromkeys(("gemm_busy", "vector_busy", "load_beats", "store_beats", "fetch_beats"), 0)
# 8 KB a slice: every scratchpad access of 64 bits costs 10 pJ.
CONFIG = replace(
    find_config("zynq7020"),
    act_depth=8192,
    act_banks=8,
    wgt_depth=1024,
    acc_depth=2048,
    acc_banks=2,
)


def run(**counters: int) -> Performance:
    return Performance(1, 1, 1, 1, {**IDLE, **counters}, 0.0)


def test_a_cycle_of_the_matrix_core() -> None:
    found = estimate_energy(run(gemm_busy=1_000_000), CONFIG)
    assert found.compute == pytest.approx(256 * (0.2 + 0.1))
    # 256 bytes of WGT, 16 of ACT, twice 64 of ACC.
    assert found.scratchpads == pytest.approx((256 + 16 + 128) / 8 * 10)
    assert found.dram == 0
    assert found.low == found.high == pytest.approx(found.total)


def test_a_tile_in_turns_reads_its_words_once() -> None:
    config = replace(CONFIG, tile_cycles=2, vector_cycles=4)
    turns = estimate_energy(run(gemm_busy=2_000_000, vector_busy=4_000_000), config)
    whole = estimate_energy(run(gemm_busy=1_000_000, vector_busy=1_000_000), CONFIG)
    assert turns.total == pytest.approx(whole.total)


def test_a_cycle_of_the_vector_unit() -> None:
    found = estimate_energy(run(vector_busy=1_000_000), CONFIG)
    assert found.compute == pytest.approx(16 * (3.1 + 0.1))
    assert found.scratchpads == pytest.approx((64 + 16) / 8 * 10)


def test_a_beat() -> None:
    found = estimate_energy(
        run(load_beats=400_000, store_beats=500_000, fetch_beats=100_000), CONFIG
    )
    assert found.dram == pytest.approx(1950)
    assert found.scratchpads == pytest.approx(10)
    assert (found.low, found.high) == (pytest.approx(1310), pytest.approx(2610))


@pytest.mark.parametrize(
    ("words", "picojoules"), [(1024, 10), (4096, 20), (65536, 20 * 5**0.8), (2048, 14.1)]
)
def test_memories_cost_what_was_published_and_between(words: int, picojoules: float) -> None:
    config = replace(CONFIG, act_depth=words, act_banks=1)
    found = estimate_energy(run(vector_busy=1_000_000), config)
    assert found.scratchpads == pytest.approx(16 / 8 * picojoules + 64 / 8 * 10, rel=1e-2)


def record(part: str, found_hz: float) -> str:
    clocks = {"sync": [found_hz, 50e6], "usb": [1e6, 1e6]}
    return json.dumps({"part": part, "clock_hz": 50_000_000, "clocks": clocks})


def test_the_clock_is_the_mean_of_bitstreams_when_there_are_any(tmp_path: Path) -> None:
    for name, part, hz in (("a", "LFE5U-85F-6BG381C", 50e6), ("b", "LFE5U-25F", 72e6)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(record(part, hz))
    found = estimate_clock("ECP5", tmp_path)
    assert found.hz == pytest.approx(60e6)
    assert found.error == pytest.approx(0.2)
    assert found.basis == "place and route of 2 bitstreams"


def test_without_bitstreams_the_basis_says_so(tmp_path: Path) -> None:
    core = estimate_clock("ECP5", tmp_path)
    assert "matrix core alone" in core.basis
    assert core.error is not None
    assert core.error < 0.05
    assumed = estimate_clock("Xilinx 7", tmp_path)
    assert (assumed.hz, assumed.error) == (ASSUMED_HZ, None)
    assert "assumed" in assumed.basis
