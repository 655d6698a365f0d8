"""Convolutions that Winograd's tiles compute, where any choice gives the right numbers."""

from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler.dtypes import DType
from dovetail.compiler.graph.operators.contractions import Convolution
from dovetail.compiler.graph.winograd import choose_tile, choose_whole_tile
from tests.kept import check_kept

KEPT = Path(__file__).with_name("kept_tiles.json")
CHANNELS = (15, 16, 24, 40, 64, 112, 160, 256, 512)
SIZES = (*range(1, 24), 28, 35, 56, 57, 112)
PLAIN = Convolution((1, 1), (1, 1), ((1, 1), (1, 1)), (1, 1), 1, DType.FLOAT32)


def chosen(outputs: int, inputs: int, images: int, whole: bool) -> str:
    """The tile for pictures of each size, 0 for none; rows are longer than columns."""
    given = outputs, inputs, 3, 3
    weights, found = np.ones(given if whole else 0, np.int8), ""
    for size in SIZES:
        x = images, inputs, size, size + 1
        tile = choose_whole_tile(PLAIN, x, weights) if whole else choose_tile(PLAIN, x, given)
        found += str(tile or 0)
    return f"{images} {inputs} to {outputs}: {found}"


@pytest.mark.parametrize("whole", [False, True])
def test_tiles_are_chosen_for_the_same_sizes_as_before(whole: bool) -> None:
    channels = CHANNELS[:6] if whole else CHANNELS
    lines = [chosen(a, b, n, whole) for n in (1, 3) for a in channels for b in channels]
    check_kept(KEPT, "whole" if whole else "real", lines)


@pytest.mark.parametrize(("weight", "tile"), [(114, 4), (115, None)])
def test_weights_whose_sums_are_too_large_have_no_whole_tiles(
    weight: int, tile: int | None
) -> None:
    """255 * 9 * 128 * 115 is above 2**25."""
    for sign in (1, -1):
        weights = np.full((128, 128, 3, 3), sign * weight, np.int8)
        assert choose_whole_tile(PLAIN, (1, 128, 56, 56), weights) == tile
