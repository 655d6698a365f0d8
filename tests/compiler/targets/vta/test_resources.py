"""Banks of ACC while instructions get their starts."""

import pytest

from dovetail.compiler.targets.vta.resources import AccBanks
from dovetail.isa.memories import Unit

TILES = (None, 0, 0, 1, None, 1)
BEFORE = tuple(map(frozenset, ([], [0], [1], [0, 2], [0], [3, 4])))
"""Tile 1 waits for tile 0, and for what comes between its own two instructions."""


@pytest.mark.parametrize("banks", [1, 2])
def test_a_tile_gets_a_bank_when_all_that_it_waits_for_has_started(banks: int) -> None:
    acc = AccBanks(TILES, BEFORE, banks)
    assert acc.free_at(0, Unit.LOAD) == 0
    assert acc.take(0, Unit.LOAD, 5) == (0, set())
    assert acc.free_at(1, Unit.GEMM) is None
    for later in (1, 3):
        acc.started(0, later)
    assert acc.free_at(1, Unit.GEMM) == 0
    assert acc.take(1, Unit.GEMM, 10) == (0, set())
    acc.started(1, 2)
    assert (acc.free_at(2, Unit.VECTOR), acc.free_at(2, Unit.GEMM)) == (10, 0)
    assert acc.take(2, Unit.VECTOR, 25) == (0, set())
    acc.started(2, 3)
    assert acc.free_at(3, Unit.GEMM) is None  # what lies between its instructions waits
    acc.started(0, 4)
    if banks == 1:
        assert acc.free_at(3, Unit.GEMM) == 25
        assert acc.take(3, Unit.GEMM, 30) == (0, {1, 2})
    else:
        assert acc.free_at(3, Unit.GEMM) == 0
        assert acc.take(3, Unit.GEMM, 30) == (1, set())
    assert acc.free_at(5, Unit.VECTOR) == 30


def test_no_bank_is_free_while_tiles_are_in_all() -> None:
    acc = AccBanks((0, 0, 1), (frozenset(),) * 3, 1)
    acc.take(0, Unit.GEMM, 9)
    assert acc.free_at(2, Unit.GEMM) is None
    acc.take(1, Unit.VECTOR, 7)
    assert acc.free_at(2, Unit.GEMM) == 9
