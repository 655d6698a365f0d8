"""Places and sizes of activations, against those counted by hand."""

from dataclasses import replace

import pytest

from dovetail.compiler.loops.expressions import as_index
from dovetail.compiler.targets.vta.layers.activation import Activation, Grid

GRID = Grid(9, 11, (1, 2), (2, 3))
WHOLE = Activation("x", 10, 5, 7, 4, halo=(1, 2, 3, 4), fill=0, spare=6)
PART = replace(WHOLE, height=3, width=2, first_block=1, channels=5, whole_channels=10, grid=GRID)
"""Two blocks of the whole, behind its first; every other row, every third column."""
APART = replace(WHOLE, places=(0, 1, 8))


def test_sizes_are_those_of_the_whole_with_its_halo() -> None:
    assert (WHOLE.blocks, WHOLE.rows, WHOLE.columns, WHOLE.words) == (3, 9, 13, 3 * 9 * 13)
    assert (PART.blocks, PART.rows, PART.columns, PART.words) == (2, 13, 17, 2 * 13 * 17)
    assert (WHOLE.full_size, WHOLE.plane) == ((5, 7), 5 * 7 + 6)
    assert (PART.full_size, PART.plane) == ((9, 11), 9 * 11 + 6)
    assert PART.buffer.shape == (3, 13, 17, 4)
    assert WHOLE.buffer.shape == (3, 9, 13, 4)


def test_a_part_knows_the_tensor_that_it_is_of() -> None:
    assert WHOLE.whole == WHOLE
    assert WHOLE.all_channels is WHOLE
    assert PART.all_channels == replace(PART, channels=10, first_block=0, whole_channels=None)
    assert PART.whole == replace(WHOLE, height=9, width=11)


def test_channels_may_lie_apart() -> None:
    assert list(WHOLE.channel_places) == list(range(10))
    assert list(APART.channel_places) == [0, 1, 8]
    assert APART.blocks == 3


@pytest.mark.parametrize(
    ("given", "place"), [(WHOLE, (1, 3, 5, 3)), (PART, (2, 1 + 2 * 2 + 1, 2 + 3 * 3 + 2, 3))]
)
def test_an_element_lies_behind_the_halo(given: Activation, place: tuple[int, ...]) -> None:
    found = given.place(*map(as_index, (1, 2, 3, 3)))
    assert found == tuple(map(as_index, place))


def test_rows_of_a_part_are_counted_from_the_uppermost() -> None:
    assert GRID.downward(3) is GRID
    assert replace(GRID, steps=(-2, 3)).downward(3) == Grid(9, 11, (1 - 2 * 2, 2), (2, 3))
