"""Dependences: held against every pair of instructions."""

import numpy as np
import pytest

from dovetail.compiler.targets.vta.dependence import dependences
from dovetail.isa.footprint import dram_rows, scratchpad_reads, scratchpad_writes
from dovetail.isa.instructions import Instruction, Load, Store

from .programs import TINY, draw, random_program

Places = set[tuple[object, int]]


def touched(instruction: Instruction) -> tuple[Places, Places]:
    """Every place read, and every place written."""
    reads: Places = {
        (touch.memory, int(a))
        for touch in scratchpad_reads(instruction, TINY)
        for a in touch.addresses
    }
    writes: Places = {
        (touch.memory, int(a))
        for touch in scratchpad_writes(instruction, TINY)
        for a in touch.addresses
    }
    if isinstance(instruction, Load | Store):
        moved = {("dram", b) for s, n in dram_rows(instruction, TINY) for b in range(s, s + n)}
        (writes if isinstance(instruction, Store) else reads).update(moved)
    return reads, writes


def closure(before: list[set[int]]) -> list[set[int]]:
    """Everything each instruction comes after, through others too."""
    total: list[set[int]] = []
    for direct in before:
        total.append(direct.union(*(total[other] for other in direct)))
    return total


@pytest.mark.parametrize(("seed", "count"), [*((seed, None) for seed in range(40)), (40, 400)])
def test_dependences_are_the_conflicts_of_all_pairs(seed: int, count: int | None) -> None:
    """One is so long that its accesses to DRAM outgrow the room for as many at first."""
    rng = np.random.default_rng(seed)
    program = (
        [draw(rng, TINY) for _ in range(count)] if count else random_program(rng, TINY, most=40)
    )
    places = [touched(instruction) for instruction in program]
    wanted: list[set[int]] = []
    for now, (reads, writes) in enumerate(places):
        wanted.append(
            {
                earlier
                for earlier in range(now)
                if places[earlier][1] & (reads | writes) or places[earlier][0] & writes
            }
        )
    found = [set(before) for before in dependences(program, TINY)]
    assert all(direct <= conflicts for direct, conflicts in zip(found, wanted, strict=True))
    assert closure(found) == closure(wanted)
