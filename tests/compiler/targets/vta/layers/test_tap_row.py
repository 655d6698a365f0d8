"""Rows of taps that are cut into groups of three, and where each tap then lies."""

import pytest

from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.targets.vta.layers.tap_row import TapRow, cut_row

PADS = 0, 0, 0, 0


@pytest.mark.parametrize(
    ("kernel", "step", "dilation", "width", "depth", "row"),
    [
        ((5, 5), 1, 1, 6, 64, TapRow(2, 3, 2)),
        ((5, 5), 1, 1, 6, 40, TapRow(2, 3, 2)),
        ((5, 5), 1, 1, 6, 39, TapRow(1, 5)),  # 40 words
        ((1, 3), 1, 1, 6, 64, TapRow(1, 3)),
        ((1, 4), 1, 1, 6, 64, TapRow(2, 3, 1)),
        ((1, 6), 1, 1, 6, 64, TapRow(2, 3, 3)),
        ((1, 7), 1, 1, 6, 64, TapRow(3, 3, 2)),
        ((1, 4), 1, 1, 2, 64, TapRow(1, 4)),  # 8 cycles either way
        ((1, 4), 1, 1, 3, 64, TapRow(2, 3, 1)),  # 10 of 12
        ((1, 4), 1, 1, 3, 16, TapRow(2, 3, 1)),
        ((1, 4), 1, 1, 3, 15, TapRow(1, 4)),  # a quarter must go if blocks wait
        ((1, 4), 1, 1, 4, 15, TapRow(2, 3, 1)),  # 12 of 16
        ((1, 5), 2, 1, 4, 64, TapRow(1, 5)),  # 20 either way
        ((1, 5), 2, 1, 5, 64, TapRow(2, 3, 2)),
        ((1, 5), 1, 2, 9, 64, TapRow(1, 5)),
        ((1, 5), 2, 2, 4, 64, TapRow(2, 3, 2)),
    ],
)
def test_a_row_is_cut_where_that_is_faster_and_fits(
    kernel: tuple[int, int], step: int, dilation: int, width: int, depth: int, row: TapRow
) -> None:
    conv = Conv2d((1, step), PADS, 8, 0, 0, (1, dilation))
    assert cut_row(conv, kernel, width, depth) == row


@pytest.mark.parametrize(
    ("row", "taps", "words", "places"),
    [
        (TapRow(1, 2), 2, 4, [0, 1]),
        (TapRow(1, 5), 5, 5, [0, 1, 2, 3, 4]),
        (TapRow(2, 3, 1), 4, 8, [0, 1, 2, 6]),
        (TapRow(2, 3, 2), 5, 8, [0, 1, 2, 5, 6]),
        (TapRow(2, 3, 3), 6, 8, [0, 1, 2, 4, 5, 6]),
        (TapRow(3, 3, 2), 7, 12, [0, 1, 2, 5, 6, 9, 10]),
    ],
)
def test_a_tap_of_two_groups_counts_in_the_first(
    row: TapRow, taps: int, words: int, places: list[int]
) -> None:
    assert (row.words, row.places(taps).tolist()) == (words, places)


def test_a_row_is_that_of_the_loops() -> None:
    assert TapRow.of({"kg": 2, "kx": 3, "x": 9}) == TapRow(2, 3)
    assert TapRow.of({"x": 9}) == TapRow(1, 1)
