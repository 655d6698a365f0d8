"""Energy and clock: worked by hand."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler.explore.clock import (
    ASSUMED_HZ,
    ClockModel,
    ClockRecord,
    load_clock_model,
)
from dovetail.compiler.explore.energy import estimate_energy
from dovetail.compiler.explore.evaluate import Performance
from dovetail.isa.config import HardwareConfig
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


def bitstream(folder: Path, name: str, hz: float) -> None:
    config = find_config(name)
    values = {
        "config": name,
        "fingerprint": config.fingerprint,
        "part": "LFE5U-85F-6BG381C",
        "clock_hz": 50_000_000,
        "clocks": {"sync": [hz, 50e6], "usb": [1e6, 1e6]},
        "seed": 1,
    }
    (folder / name).mkdir()
    (folder / name / "manifest.json").write_text(json.dumps(values))


def test_clocks_are_found_again_that_follow_the_model() -> None:
    def period(config: HardwareConfig) -> float:
        wires = np.log2(config.block) + 0.5 * np.log2(config.block / config.vector_cycles)
        return float(10.0 + 4.0 * (not config.deep_pipelines) + wires)

    shapes = [(b, v, d) for b in (4, 8, 16) for v in (1, 2) for d in (False, True)]
    configs = [
        replace(CONFIG, block=block, bus_bytes=4, vector_cycles=cycles, deep_pipelines=deep)
        for block, cycles, deep in shapes
    ]
    records = [ClockRecord(each, "LFE5U", 1e9 / period(each), 1) for each in configs]
    model = ClockModel(records[1:])
    assert model.clock(configs[0]).hz == pytest.approx(1e9 / period(configs[0]))
    assert model.error == pytest.approx(0, abs=1e-9)


def test_an_error_is_how_far_off_the_others_say_a_record_is() -> None:
    model = ClockModel([ClockRecord(CONFIG, "LFE5U", hz, 1) for hz in (50e6, 60e6)])
    assert model.errors == pytest.approx((0.2, -1 / 6))
    assert model.error == pytest.approx(0.2)


def test_bitstreams_are_records_too(tmp_path: Path) -> None:
    without = load_clock_model("ECP5", tmp_path).records
    bitstream(tmp_path, "ecp5_85_8x8", 48e6)
    (more,) = set(load_clock_model("ECP5", tmp_path).records) - set(without)
    assert (more.hz, more.config.block) == (48e6, 8)


def test_bitstreams_of_configurations_that_changed_do_not_count(tmp_path: Path) -> None:
    bitstream(tmp_path, "ecp5_85_8x8", 48e6)
    file = tmp_path / "ecp5_85_8x8" / "manifest.json"
    file.write_text(file.read_text().replace('"fingerprint": ', '"fingerprint": 1'))
    bitstreams = [each for each in load_clock_model("ECP5", tmp_path).records if not each.source]
    assert not bitstreams


def test_without_records_the_basis_says_so(tmp_path: Path) -> None:
    assumed = load_clock_model("Xilinx 7", tmp_path)
    assert (assumed.clock(CONFIG).hz, assumed.error) == (ASSUMED_HZ, None)
    assert "assumed" in assumed.basis
