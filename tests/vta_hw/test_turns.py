"""Elements that the lanes of the vector unit take."""

from dataclasses import replace

import pytest

from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.vta_hw.turns import turn_elements

LARGE = find_config("large")


@pytest.mark.parametrize("turns", [1, 2, 4])
@pytest.mark.parametrize("groups", [1, 4, 16])
@pytest.mark.parametrize("tile_cycles", [1, 2])
def test_every_element_has_one_lane_in_one_turn(tile_cycles: int, groups: int, turns: int) -> None:
    config = replace(LARGE, tile_cycles=tile_cycles, lane_groups=groups, vector_cycles=turns)
    found = turn_elements(config)
    assert len(found) == turns
    assert {len(lanes) for lanes in found} == {config.block // turns}
    assert sorted(element for lanes in found for element in lanes) == list(range(config.block))


def test_words_of_one_turn_are_as_they_are() -> None:
    assert turn_elements(replace(LARGE, lane_groups=4)) == [list(range(LARGE.block))]


@pytest.mark.parametrize("name", ["ecp5_85", "ecp5_85_8x8"])
def test_a_lane_has_the_rows_of_one_group(name: str) -> None:
    config = find_config(name)
    groups = [
        {_group(config, lanes[lane]) for lanes in turn_elements(config)}
        for lane in range(config.block // config.vector_cycles)
    ]
    assert groups == [{group} for group in range(config.lane_groups)]


def _group(config: HardwareConfig, row: int) -> int:
    """The group that has a row of a tile: each turn has rows of all groups."""
    of_turn = config.block // config.tile_cycles
    return row % of_turn // (of_turn // config.lane_groups)
