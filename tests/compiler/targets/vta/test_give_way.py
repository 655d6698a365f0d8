"""STOREs behind what waits for their banks."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.targets.vta.check import check
from dovetail.compiler.targets.vta.dependence import dependences, permuted
from dovetail.compiler.targets.vta.give_way import giving_way
from dovetail.compiler.targets.vta.tokens import insert_tokens
from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory, Unit

from .programs import TINY, executed, random_program, same
from .test_postpone import cycles_of, matrix_product, program_of


def test_a_store_gives_way_to_the_product_that_reads_its_bank() -> None:
    program = program_of(
        matrix_product(512, 0),
        Load(memory=Memory.ACT, sram_address=0, dram_address=0, count_x=400),
        Store(sram_address=0, dram_address=4096, count_x=400),
        Load(memory=Memory.WGT, sram_address=4, dram_address=0, count_x=4),
        matrix_product(0, 4),
    )
    before = dependences(program, TINY)
    expected = cycles_of(program)
    assert expected[4][0] > expected[2][1]
    order, after = giving_way(program, before, expected, 200)
    assert order == [0, 1, 3, 4, 2]
    assert after[2] == before[2] | {4}
    moved = insert_tokens([program[index] for index in order], TINY, permuted(after, order))
    check(moved, TINY)
    assert cycles_of(moved)[3][0] < expected[2][0] + 100


def test_a_store_of_what_is_written_anew_before_stays() -> None:
    program = program_of(
        matrix_product(512, 0),
        Store(sram_address=0, dram_address=4096, count_x=400),
        Load(memory=Memory.ACT, sram_address=0, dram_address=0, count_x=16),
        matrix_product(0, 0),
    )
    expected = [(0, 10), (0, 999), (1000, 1099), (1000, 1020)]
    before = dependences(program, TINY)
    assert giving_way(program, before, expected, 200) == ([0, 1, 2, 3], before)


@given(st.integers(0, 1 << 20), st.integers(500, 2000), st.integers(1, 6))
def test_every_order_keeps_what_depends_on_what(seed: int, slow: int, held: int) -> None:
    program = random_program(np.random.default_rng(seed), TINY)
    before = dependences(program, TINY)
    expected = [
        (slow * index, slow * (index + held) - 1 if each.unit is Unit.STORE else slow * index + 1)
        for index, each in enumerate(program)
    ]
    order, after = giving_way(program, before, expected, 200)
    assert sorted(order) == list(range(len(program)))
    place = {index: number for number, index in enumerate(order)}
    assert all(place[other] < place[index] for index in order for other in after[index])
    assert all(one <= other for one, other in zip(before, after, strict=True))
    assert same(executed(program, TINY), executed([program[index] for index in order], TINY))
