"""The order of the program: same result, less waiting."""

import numpy as np
import pytest

from dovetail.compiler.targets.vta.dependence import dependences
from dovetail.compiler.targets.vta.order import order
from dovetail.compiler.targets.vta.tokens import insert_tokens
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Instruction, Load
from dovetail.isa.memories import Memory
from tests.instructions import gemm

from .programs import TINY, executed, random_program, same, simulated


def reordered(program: list[Instruction], *, by_use: bool = False) -> list[int]:
    before, tiles = dependences(program, TINY), [None] * len(program)
    return order(program, before, tiles, TINY, by_use=by_use).places


@pytest.mark.parametrize("seed", range(40))
def test_the_new_order_leaves_the_same_result(seed: int) -> None:
    program = random_program(np.random.default_rng(seed), TINY, most=50)
    places = reordered(program, by_use=bool(seed % 2))
    assert sorted(places) == list(range(len(program)))
    new = [program[place] for place in places]
    assert same(executed(new, TINY), executed(program, TINY))


def tile(number: int) -> list[Instruction]:
    """Weights, and more work that needs them than the queue of a unit holds."""
    load = Load(memory=Memory.WGT, sram_address=32 * number, dram_address=0, count_x=32)
    sums = with_bank_masks(gemm((32, 0, 1, 0), wgt_address=32 * number, reduction=1), TINY)
    return [load, *[sums] * (2 * TINY.queue_depth)]


def test_loads_move_before_the_work_of_earlier_tiles() -> None:
    program = [instruction for number in range(4) for instruction in tile(number)]
    new = [program[place] for place in reordered(program)]
    before, after = (
        simulated(insert_tokens(each, TINY), TINY).counters["cycles"] for each in (program, new)
    )
    assert after < before


def test_by_use_what_is_needed_first_comes_before_what_has_longer_to_go() -> None:
    """Two sums; what reads the second comes first, but more follows the other."""
    near, far = (
        with_bank_masks(gemm((8, 0, 1, 0), acc_address=at, reduction=1), TINY) for at in (0, 16)
    )
    program = [far, near, near, far, far, far]
    assert [reordered(program, by_use=by_use)[0] for by_use in (False, True)] == [0, 1]
