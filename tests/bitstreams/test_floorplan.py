"""The floorplan, on a netlist that has the cells it places and no others."""

import re
from collections import Counter, defaultdict
from typing import Any

import pytest

from dovetail.bitstreams.floorplan import COLUMNS, place_by_hand
from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.vta_hw.turns import turn_elements

GROUPS, LANES, BLOCK = 4, 2, 16
"""LANES: rows of multipliers in a group."""
BITS = 8 * BLOCK * LANES
CONFIG = find_config("ecp5_85")
CONFIGS = pytest.mark.parametrize("config", [CONFIG, find_config("ecp5_85_fast")])
MEMORY = "DP16KD"


def _width(config: HardwareConfig) -> int:
    """Bits of a memory of weights, in each half of a word."""
    return 32 // config.core_clock_ratio


def _netlist(config: HardwareConfig = CONFIG) -> dict[str, Any]:
    """Two rows of multipliers in each of four groups, and four lanes, as of ``ecp5_85``."""
    width = _width(config)
    cells: dict[str, Any] = {}
    nets: dict[str, Any] = {}

    def add(name: str, kind: str, bits: list[int]) -> None:
        cells[name] = {
            "type": kind,
            "attributes": {},
            "connections": {"DOA0": bits[:1], "DOB0": bits[1:]},
            "port_directions": {"DOA0": "output", "DOB0": "output"},
        }

    bit = 2
    for group in range(GROUPS):
        for lane in range(LANES):
            for i in range(BLOCK):
                add(f"core.accelerator.gemm.group{group}.product{lane}_{i}_X", "MULT18X18D", [])
        for turn in range(config.tile_cycles):
            bits = list(range(bit, bit + BITS))
            bit += BITS
            nets[f"core.accelerator.gemm.group{group}.wgt_{turn}__data"] = {"bits": bits}
            part = turn * GROUPS + group
            for k in range(BITS // width):
                own = bits[k * width : (k + 1) * width]
                add(f"core.accelerator.wgt.wgt_bank0_part{part}.0.{k}", MEMORY, own)
            for bank in range(2):
                for k in range(LANES * config.core_clock_ratio):
                    add(f"core.accelerator.acc.acc_bank{bank}_part{part}.0.{k}", MEMORY, [])
    for bank in range(4):
        for k in range(8):
            add(f"core.accelerator.act.act_bank{bank}.0.{k}", MEMORY, [])
    for k in range(2 * BLOCK):
        add(f"core.accelerator.par.par_bank0.0.{k}", MEMORY, [])
    for k in range(BLOCK):
        add(f"core.accelerator.tab.tab_lane{k}.0.0", MEMORY, [])
        add(f"core.accelerator.tap.tap_part{k // 4}.0.{k % 4}", MEMORY, [])
    for lane in range(4):
        for name in ("product_low", "requantize.product_low"):
            add(f"core.accelerator.vector.lane{lane}.{name}_1_X", "MULT18X18D", [])
    add("core.bridge.buffer.0.0", MEMORY, [])
    return {"cells": cells, "netnames": nets}


def _places(module: dict[str, Any]) -> dict[str, tuple[int, int, str]]:
    """Column, row and site of each cell that has them."""
    found = {}
    for name, cell in module["cells"].items():
        if "BEL" in cell["attributes"]:
            match = re.fullmatch(r"X(\d+)/Y(\d+)/(\w+)", cell["attributes"]["BEL"])
            assert match, cell["attributes"]
            found[name] = (int(match[1]), int(match[2]), match[3])
    return found


@CONFIGS
def test_every_multiplier_and_memory_has_a_place_of_its_own(config: HardwareConfig) -> None:
    module = _netlist(config)
    placed = place_by_hand(module, config)
    places = _places(module)
    assert placed == len(places) == len(module["cells"]) - 1, "all but the bridge's buffer"
    assert max(Counter(places.values()).values()) == 1
    rows: dict[str, set[int]] = defaultdict(set)
    for name, (_, row, site) in places.items():
        rows[site[:3]].add(row)
        assert site.startswith("EBR") == (module["cells"][name]["type"] == MEMORY)
    assert rows["MUL"] <= {10, 34, 58}
    assert rows["EBR"] <= {22, 46, 70, 82}


@CONFIGS
def test_a_group_lies_together_with_its_weights(config: HardwareConfig) -> None:
    module = _netlist(config)
    place_by_hand(module, config)
    width = _width(config)
    places = _places(module)
    reach = COLUMNS[3] - COLUMNS[0]
    for group in range(GROUPS):
        for lane in range(LANES):
            prefix = f"core.accelerator.gemm.group{group}.product{lane}_"
            multipliers = {name: place for name, place in places.items() if prefix in name}
            columns = [x for x, _, _ in multipliers.values()]
            assert max(columns) - min(columns) < reach
            for turn in range(config.tile_cycles):
                for k in range(BLOCK * 8 // width):
                    number = lane * BLOCK * 8 // width + k
                    part = turn * GROUPS + group
                    memory = places[f"core.accelerator.wgt.wgt_bank0_part{part}.0.{number}"]
                    near = places[f"{prefix}{k * width // 8}_X"]
                    assert abs(memory[0] - near[0]) < 18, "the block above, below or beside that"
                    assert abs(memory[1] - near[1]) <= 12


def test_a_lane_of_the_vector_unit_lies_together_with_its_parameters() -> None:
    module = _netlist()
    place_by_hand(module, CONFIG)
    places = _places(module)
    for turn in turn_elements(CONFIG):
        for lane, element in enumerate(turn):
            near = places[f"core.accelerator.vector.lane{lane}.product_low_1_X"]
            for name in ("par.par_bank0.0.{0}", "tab.tab_lane{0}.0.0"):
                memory = places["core.accelerator." + name.format(element)]
                assert abs(memory[0] - near[0]) < 4 * 9


def test_other_cells_are_left_alone() -> None:
    cell = {"type": "LUT4", "attributes": {}, "connections": {}, "port_directions": {}}
    module: dict[str, Any] = {"cells": {"core.x": cell}, "netnames": {}}
    assert place_by_hand(module, CONFIG) == 0
    assert cell["attributes"] == {}
