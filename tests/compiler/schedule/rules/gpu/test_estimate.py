"""Estimates of products on a GPU: each term decides one of these, computed by hand to a nanosecond.

The first, for example: one block of 128x128 with steps of 128 bytes.  Its eight warps multiply for
0.444 us, and 32,768 bytes come in 0.468; warps meet in 0.05, and wait for 0.444; 16,384 results are
stored in 1.638, and 1.5 pass until it starts.
"""

import pytest

from dovetail.compiler.schedule.rules.gpu.estimate import (
    Tiling,
    Work,
    microseconds,
    plain_microseconds,
    tiled_microseconds,
)

SQUARE = Work(1, 2048, 2048, 1024, 2, 64)


@pytest.mark.parametrize(
    ("work", "tiling", "resident", "expected"),
    [
        (Work(1, 128, 128, 64, 2, 64), Tiling(128, 128, 256, 128, 128, 1 << 16, 2), 2, 4.1),
        (SQUARE, Tiling(128, 128, 256, 128, 128, 1 << 16, 2), 2, 24.107),
        (SQUARE, Tiling(128, 128, 256, 64, 128, 1 << 16, 2), 2, 43.482),
        (SQUARE, Tiling(128, 128, 256, 32, 128, 1 << 16, 0), 2, 78.636),
        (SQUARE, Tiling(128, 256, 256, 128, 128, 1 << 16, 3, grouped=True), 2, 16.012),
        (SQUARE, Tiling(64, 256, 128, 128, 128, 1 << 16, 3, grouped=True), 3, 23.501),
        (SQUARE, Tiling(128, 256, 128, 128, 128, 1 << 16, 3, grouped=True), 3, 17.935),
        (Work(1, 256, 256, 1024, 2, 0), Tiling(64, 64, 128, 64, 64, 1 << 14, 1), 8, 82.23),
        (Work(1, 256, 256, 1024, 4, 0), Tiling(64, 64, 1024, 64, 32, 1 << 14, 1), 2, 76.177),
        (Work(4, 4096, 4096, 64, 1, 64), Tiling(64, 64, 64, 64, 64, 1 << 12, 4), 16, 97.183),
    ],
)
def test_a_tile_takes_its_products_copies_and_waits(
    work: Work, tiling: Tiling, resident: int, expected: float
) -> None:
    assert tiling.resident == resident
    assert microseconds(work, tiling) == pytest.approx(expected, abs=1e-3)


def test_blocks_are_as_many_as_a_multiprocessor_has_room_for() -> None:
    limits = {"blocks": (32, 32, 0), "threads": (96, 8, 0), "shared": (32, 32, (227 << 10) - 1024)}
    found = {name: Tiling(8, 8, t, 64, r, s, 1).resident for name, (t, r, s) in limits.items()}
    assert found == {"blocks": 32, "threads": 21, "shared": 1}
    assert Tiling(8, 8, 256, 64, 255, 0, 1).resident == 1
    none = Tiling(8, 8, 32, 64, 32, (227 << 10) - 1023, 1)
    assert (none.resident, microseconds(SQUARE, none)) == (0, float("inf"))


@pytest.mark.parametrize(
    ("work", "sides", "expected"),
    [
        (Work(1, 64, 64, 16, 4, 4), None, 2.31),
        (Work(1, 64, 64, 17, 4, 4), None, 3.12),
        (Work(1, 2048, 2048, 512, 4, 4), None, 165.34),
        (Work(1, 2048, 2048, 512, 4, 4), (16, 32), 162.78),
        (Work(3, 100, 100, 64, 4, 4), (8, 8), 52.7),
    ],
)
def test_tiles_in_shared_memory_take_their_busier_part(
    work: Work, sides: tuple[int, int] | None, expected: float
) -> None:
    assert tiled_microseconds(work, sides) == pytest.approx(expected, abs=1e-3)


def test_threads_that_share_nothing_take_as_long_as_their_sums() -> None:
    few, many = Work(1, 64, 64, 16, 4, 4), Work(2, 512, 512, 16, 4, 4)
    assert plain_microseconds(few, 1) == pytest.approx(2.78, abs=1e-3)
    assert plain_microseconds(many, 2) == pytest.approx(6.465, abs=1e-3)
