"""Areas: the model against Yosys's counts, and the fit against its definition."""

import ast
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.explore import area_cache, area_records, gateware
from dovetail.compiler.explore.area import (
    FIGURES,
    AreaModel,
    AreaRecord,
    Family,
    area_config,
    hardware_text,
    load_area_model,
    read_records,
)
from dovetail.compiler.explore.area_plan import PLAN
from dovetail.compiler.explore.area_records import area_table
from dovetail.compiler.explore.least_squares import fit, leave_one_out
from dovetail.compiler.explore.memories import BLOCK_SHAPES, block_rams
from dovetail.isa.cache import keep
from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config

FAMILIES, RECORDS = read_records()


def test_every_count_is_of_a_planned_configuration_and_twenty_are_there() -> None:
    planned = {hardware_text(config) for config in PLAN}
    assert len(planned) == len(PLAN) >= 20
    for family in FAMILIES:
        counted = {hardware_text(each.config) for each in RECORDS if each.family == family.name}
        assert counted <= planned


@pytest.mark.parametrize(
    ("family", "bits", "widest"), [("ECP5", 1 << 14, 36), ("Xilinx 7", 1 << 15, 72)]
)
def test_block_rams_have_the_shapes_of_their_data_sheets(
    family: str, bits: int, widest: int
) -> None:
    """A ninth bit for each byte, which words of less do not have; half blocks as well."""
    shapes = BLOCK_SHAPES[family]
    assert [each.width for each in shapes if each.blocks == 1] == [
        width for width in (72, 36, 18, 9, 4, 2, 1) if width <= widest
    ]
    for each in shapes:
        ninth = 9 if each.width % 9 == 0 else 8
        assert each.width * each.depth == bits * each.blocks * ninth / 8


def test_block_rams_are_exact_without_being_fitted() -> None:
    """But for one: on ECP5, words of beats of 16 bytes."""
    off = [
        record
        for record in RECORDS
        if block_rams(record.config, record.family) != record.counts["block_rams"]
    ]
    assert [(each.family, each.config.bus_bytes) for each in off] == [("ECP5", 16)]
    found = block_rams(off[0].config, "ECP5")
    assert found == pytest.approx(off[0].counts["block_rams"], rel=0.04)


def test_multipliers_are_exact() -> None:
    models = {family.name: AreaModel(family, RECORDS, "") for family in FAMILIES}
    for record in RECORDS:
        estimate = models[record.family].estimate(record.config)
        assert round(estimate["multipliers"]) == record.counts["multipliers"]


def test_a_count_of_these_sources_is_taken_and_another_is_estimated() -> None:
    family = FAMILIES[0]
    first = next(each for each in RECORDS if each.family == family.name)
    same = AreaModel(family, RECORDS, first.gateware).area(first.config)
    assert same.basis == "synthesised"
    assert same.error == 0
    assert [getattr(same, figure) for figure in FIGURES] == [first.counts[f] for f in FIGURES]
    changed = AreaModel(family, RECORDS, "other sources").area(first.config)
    assert changed.basis == "estimated"
    assert changed.error
    assert changed.said.startswith("estimated ±")
    shares = [first.counts[f] / c for f, c in zip(FIGURES, family.capacity, strict=True)]
    assert same.share == pytest.approx(max(shares))


def test_a_configuration_beyond_all_records_says_so() -> None:
    config = area_config(find_config("large"), "ECP5")
    small = [each for each in RECORDS if each.config.block <= 16]
    area = AreaModel(FAMILIES[0], small, "").area(config)
    assert (area.basis, area.error) == ("extrapolated", None)
    assert area.said == "extrapolated, error unknown"


def test_multipliers_of_a_family_decide_how_a_configuration_is_built() -> None:
    config = find_config("zynq7020")
    assert area_config(config, "ECP5").multiplier_bits == 18
    assert area_config(config, "Xilinx 7").multiplier_bits == 25
    assert area_config(config, "ECP5").identity == config.identity


@given(st.integers(0, 2**32 - 1))
def test_the_fit_meets_the_conditions_of_its_optimum(seed: int) -> None:
    # Karush, Kuhn and Tucker: the gradient is 0 where a weight is free, and points outwards at 0.
    chance = np.random.default_rng(seed)
    features, figures = chance.random((12, 5)), 1 + chance.random(12)
    weights = fit(features, figures)
    scaled = features / figures[:, None]
    gradient = scaled.T @ (scaled @ weights - 1)
    assert (weights >= 0).all()
    assert gradient[weights > 0] == pytest.approx(0, abs=1e-7)
    assert (gradient[weights == 0] >= -1e-7).all()


def test_leaving_out_finds_what_does_not_follow() -> None:
    features = np.array([[1.0, x] for x in (1, 2, 3, 4, 5)])
    figures = features @ np.array([10.0, 2.0])
    assert leave_one_out(features, figures) == pytest.approx(0, abs=1e-9)
    figures[2] *= 2
    assert leave_one_out(features, figures)[2] == pytest.approx(-0.5)


def test_the_gatewares_hash_does_not_see_comments_but_sees_code(tmp_path: Path) -> None:
    found = gateware.gateware_hash()
    assert found == gateware.gateware_hash()
    one = 'def f():\n    """Say."""\n    return 1  # one\n'
    trees = [
        ast.dump(gateware._without_docstrings(ast.parse(text)))
        for text in (one, "def f():\n    return 1\n", "def f():\n    return 2\n")
    ]
    assert trees[0] == trees[1] != trees[2]


def test_the_gatewares_hash_covers_all_units(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    original = Path.read_text

    def watch(self: Path, *args: object, **kwargs: object) -> str:
        read.append(self.name)
        return original(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "read_text", watch)
    gateware.gateware_hash.__wrapped__()
    assert {"gemm.py", "vector_lane.py", "load.py", "scratchpad.py", "config.py"} <= set(read)


def test_a_count_of_this_machine_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path))
    config = find_config("tiny")
    counts = dict(zip(FIGURES, (1, 2, 3, 4.5), strict=True))
    record = AreaRecord(config, "ECP5", counts, gateware.gateware_hash(), "n", "y")
    name = f"area/{gateware.gateware_hash()[:16]}-a.json"
    keep(tmp_path, name, json.dumps(area_cache.record_values(record)).encode())
    (tmp_path / name.replace("-a", "-b")).write_text("{damaged")
    (tmp_path / name.replace("-a", "-c")).write_text("{}")
    (found,) = area_cache.counted_here()
    assert found.counts == counts
    assert found.config.identity == config.identity
    area = load_area_model((found,))["ECP5"].area(config)
    assert (area.luts, area.basis) == (1, "synthesised")


def test_each_netlist_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synthesis = pytest.importorskip("dovetail.vta_hw.synthesis", reason="needs amaranth")
    verilog = pytest.importorskip("dovetail.vta_hw.verilog")
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path))
    counted = []

    def synthesize(config: object, family: object, text: str) -> object:
        counted.append(text)
        return synthesis.Resources(100 * len(counted), 2, 3, 4.5)

    def emit(config: HardwareConfig) -> str:
        return f"netlist of {config.block} with {config.multiplier_bits} bits"

    monkeypatch.setattr(synthesis, "synthesize", synthesize)
    monkeypatch.setattr(verilog, "emit_verilog", emit)
    config = find_config("tiny")
    first = area_cache.count_area(config, "ECP5")
    assert first.counts == dict(zip(FIGURES, (100, 2, 3, 4.5), strict=True))
    # Other sources, and the same netlist.
    monkeypatch.setattr(area_cache, "gateware_hash", lambda: "f" * 64)
    again = area_cache.count_area(config, "ECP5")
    assert (again.counts, again.netlist) == (first.counts, first.netlist)
    assert again.gateware != first.gateware
    area_cache.count_area(config, "Xilinx 7")
    assert counted == ["netlist of 4 with 18 bits", "netlist of 4 with 25 bits"]
    assert {each.family for each in area_cache.counted_here()} == {"ECP5", "Xilinx 7"}


def test_the_table_says_what_leaving_out_a_count_shows() -> None:
    model = AreaModel(FAMILIES[0], RECORDS, "")
    lines = area_table([model]).splitlines()
    assert len([line for line in lines if line.startswith("| 4x4")]) >= 3
    worst = max(abs(error) for error in model.errors["luts"])
    assert f"{100 * worst:.1f} %" in lines[-1]


def test_renewing_counts_only_what_has_another_netlist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verilog = pytest.importorskip("dovetail.vta_hw.verilog", reason="needs amaranth")
    planned = [each.config for each in RECORDS if each.family == "ECP5"][:3]
    file = tmp_path / "records.json"
    text = "one netlist"
    digest = hashlib.sha256(text.encode()).hexdigest()
    counted = []

    def count(config: HardwareConfig, family: str) -> AreaRecord:
        counted.append((hardware_text(config), family))
        return AreaRecord(config, family, dict.fromkeys(FIGURES, 1), "now", digest, "y")

    def read() -> tuple[list[Family], list[AreaRecord]]:
        return read_records(file) if file.exists() else (FAMILIES, same)

    same = [
        AreaRecord(config, "ECP5", dict.fromkeys(FIGURES, 7), "then", digest, "y")
        for config in planned[:2]
    ]
    monkeypatch.setattr(area_records, "PLAN", planned)
    monkeypatch.setattr(area_records, "RECORDS", file)
    monkeypatch.setattr(area_records, "read_records", read)
    monkeypatch.setattr(area_records, "count_area", count)
    monkeypatch.setattr(verilog, "emit_verilog", lambda config: text)
    area_records.renew(2)
    _, found = read_records(file)
    assert len(counted) == 2
    assert [each.counts["luts"] for each in found if each.family == "ECP5"][:2] == [7, 7]
    assert {each.gateware for each in found[:2]} == {gateware.gateware_hash()}
    area_records.renew()
    assert len(counted) == len(set(counted)) == 4
    assert {each.family for each in read_records(file)[1]} == {"ECP5", "Xilinx 7"}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tiny", "4x4, bus 4, 2048/128/128 words, 4/4 banks, queues 4"),
        ("zynq7020", "16x16, bus 8, 8192/1024/1024 words, 8/2 banks"),
        (
            "ecp5_85",
            "16x16, bus 8, 4096/512/1024 words, 4/2 banks, 2 cycles a tile, 4 groups, 4 cycles a "
            "word, deep",
        ),
    ],
)
def test_a_configuration_is_told_in_a_line(name: str, said: str) -> None:
    assert area_records.configuration_text(find_config(name)) == said
