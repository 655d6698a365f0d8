"""How many rows of Winograd's tiles go together."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.schedule.rules.cpu.winograd_rows import Tiles, rows_together


def together(tile: int, size: int, inputs: int, outputs: int, threads: int) -> tuple[int, int]:
    """Rows of tiles, and all of them, of a float32 convolution of ``size`` rows and columns."""
    down = -(-size // tile)
    tiles = Tiles((tile + 2) ** 2, down, down, (inputs, 16), (outputs, 16), (4, 4))
    return rows_together(tiles, threads), down


@settings(max_examples=100, deadline=None)
@given(
    tile=st.sampled_from((2, 4)),
    size=st.integers(1, 120),
    inputs=st.integers(1, 16),
    outputs=st.integers(1, 16),
    threads=st.integers(1, 8),
)
def test_at_least_one_row_and_at_most_all_go_together(
    tile: int, size: int, inputs: int, outputs: int, threads: int
) -> None:
    rows, down = together(tile, size, inputs, outputs, threads)
    assert 1 <= rows <= down


@pytest.mark.parametrize("threads", [1, 2])
def test_what_fits_the_cache_goes_at_once_when_weights_are_many(threads: int) -> None:
    rows, down = together(4, 14, 16, 16, threads)
    assert rows == down == 4


def test_large_images_with_few_weights_go_a_few_rows_at_a_time() -> None:
    rows, down = together(4, 224, 2, 2, 1)
    assert down == 56
    block_bytes = rows * 36 * 56 * 4 * (2 * 16 + 2 * 16)
    assert block_bytes <= 640 << 10
