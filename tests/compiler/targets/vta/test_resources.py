"""Banks of ACC and work of DRAM while instructions get their starts."""

from dataclasses import replace

import pytest

from dovetail.compiler.targets.vta.cost import Cost
from dovetail.compiler.targets.vta.resources import AccBanks, DramWork, first_fetch
from dovetail.isa.configs import find_config
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory, Unit

from .programs import simulated

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


@pytest.mark.parametrize("name", ["tiny", "zynq7020", "large"])
def test_the_first_instruction_starts_when_the_simulator_says(name: str) -> None:
    config, latency = find_config(name), 31
    load = Load(memory=Memory.ACT, dram_address=0, sram_address=0, count_x=1)
    found = simulated([with_bank_masks(load, config)], config, latency)
    slow = replace(config, dram=replace(config.dram, latency_cycles=latency))
    assert first_fetch(slow) == found.accepted[0]


def test_work_of_dram_by_hand() -> None:
    """On tiny an instruction is fetched in 16 cycles; the queues are full in cycle 30 + 4 * 16."""
    work = DramWork(find_config("tiny"))
    assert first_fetch(find_config("tiny")) == 30
    # From 94 on, 20 cycles, and 20 of 64 parts of the 16 that are due for an instruction.
    assert work.take(Unit.LOAD, 50, Cost(0, 40, 20, 2)) == 94 + 20 + 5 - (50 + 20)
    assert work.take(Unit.GEMM, 60, Cost(5, 5)) == 0
    # From 119 on, 30 cycles, 30 parts of 32 cycles for two instructions, 1.5 turns there and back.
    assert work.take(Unit.STORE, 100, Cost(0, 30, 30, 1.5)) == 119 + 30 + 15 + 12 - (100 + 30)
    # DRAM was idle from 176 to 264, and has fetched all that was due.
    assert work.take(Unit.LOAD, 300, Cost(0, 100, 64, 4)) == 0
    assert work.take(Unit.LOAD, 364, Cost(0, 70, 70, 1)) == 16
    # A STORE that starts as the LOAD ends turns nothing.
    assert work.take(Unit.STORE, 450, Cost(0, 0, 0)) == 0
    assert work.take(Unit.STORE, 450, Cost(0, 64, 64, 8)) == 32
