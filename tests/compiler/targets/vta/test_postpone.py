"""LOADs behind others that are waited for."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.targets.vta.dependence import dependences, permuted
from dovetail.compiler.targets.vta.postpone import postponed
from dovetail.compiler.targets.vta.timing import expected_cycles
from dovetail.compiler.targets.vta.tokens import insert_tokens
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Fold, Gemm, Instruction, Load, Multiplier, Vector
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.program import program_to_bytes
from dovetail.vta_sim.timing import time_program
from tests.instructions import gemm

from .programs import TINY, executed, random_program, same


def load(memory: Memory, address: int, count: int) -> Load:
    return Load(memory=memory, sram_address=address, dram_address=0, count_x=count)


def matrix_product(act: int, wgt: int) -> Gemm:
    return gemm((4, 1, 1, 0), act_address=act, wgt_address=wgt, reduction=1)


def program_of(*plain: Instruction) -> list[Instruction]:
    masked = [with_bank_masks(each, TINY) for each in plain]
    return insert_tokens(masked, TINY)


def cycles_of(program: list[Instruction]) -> tuple[tuple[int, int], ...]:
    return expected_cycles(time_program, program_to_bytes(program), TINY, 0)


def test_weights_for_later_come_behind_the_image_that_is_waited_for() -> None:
    program = program_of(
        load(Memory.WGT, 0, 4),
        matrix_product(0, 0),
        load(Memory.WGT, 4, 124),
        load(Memory.ACT, 512, 64),
        matrix_product(512, 0),
        matrix_product(512, 4),
    )
    before = dependences(program, TINY)
    expected = cycles_of(program)
    assert expected[4][0] - expected[1][1] > 500
    order = postponed(program, before, expected)
    assert order == [0, 1, 3, 2, 4, 5]
    moved = insert_tokens([program[index] for index in order], TINY, permuted(before, order))
    assert cycles_of(moved)[3 + 1][0] < expected[4][0]


def test_weights_for_later_come_behind_taps_that_the_vector_unit_waits_for() -> None:
    """While it works on what the first taps are for, those of the next have no room."""
    taps = Vector(
        source=Memory.ACT,
        destination=Memory.ACT,
        source_address=512,
        destination_address=1024,
        extent=(4, 8, 1, 1, 1),
        source_stride=(1, 1, 0, 0, 0),
        destination_stride=(1, 0, 0, 0),
        tap_stride=(1, 0, 0, 0, 0),
        reduction_levels=1,
        multiplier=Multiplier.TAP,
        fold=Fold.MAC,
    )
    program = program_of(
        load(Memory.WGT, 0, 4),
        load(Memory.TAP, 0, 4),
        taps,
        load(Memory.WGT, 4, 124),
        load(Memory.ACT, 0, 64),
        load(Memory.TAP, 0, 4),
        taps,
        matrix_product(1024, 4),
        matrix_product(0, 4),
    )
    before = dependences(program, TINY)
    expected = cycles_of(program)
    assert postponed(program, before, expected) == list(range(9))
    order = postponed(program, before, expected, {Unit.GEMM, Unit.VECTOR})
    assert order == [0, 1, 2, 5, 3, 4, 6, 7, 8]


LATER, AWAITED = load(Memory.WGT, 4, 4), load(Memory.ACT, 512, 4)
START = 601
"""When the second product starts, which waits since 100."""


def order_of(
    start: int = START, came: int = 597, ends: Sequence[int] = (100,), use: int = -1
) -> list[int]:
    """A product that ends at 100, LOADs for later that end at ``ends``, one that ends at ``came``,
    and the products at ``start`` that waits for it and for ``use``, and later.
    """
    count = len(ends)
    program = [matrix_product(0, 0), *[LATER] * count, AWAITED, *[matrix_product(512, 0)] * 2]
    needs = [count + 1] if use < 0 else [count + 1, use]
    before = [*[frozenset[int]()] * (count + 2), frozenset(needs), frozenset(range(1, count + 1))]
    times = [(0, 100), *((0, end) for end in ends), (0, came), (start, start + 9), (900, 990)]
    return postponed(program, before, times)


def test_a_wait_of_more_than_500_cycles_is_worth_it() -> None:
    assert order_of() == [0, 2, 1, 3, 4]
    assert order_of(start=600) == [0, 1, 2, 3, 4]


def test_a_product_waits_for_what_ends_at_most_four_cycles_before_it() -> None:
    assert order_of(came=596) == [0, 1, 2, 3, 4]


def test_five_loads_come_later_at_most_and_none_that_ended_before_the_wait() -> None:
    assert order_of(ends=(100, 101, 102, 103, 104, 105)) == [0, 1, 7, 2, 3, 4, 5, 6, 8, 9]
    assert order_of(ends=(98, 99, 100)) == [0, 1, 2, 4, 3, 5, 6]
    assert order_of(ends=(100, 99, 100)) == [0, 1, 2, 4, 3, 5, 6]


def test_what_the_waiting_product_needs_itself_stays() -> None:
    assert order_of(ends=(100, 100), use=1) == [0, 1, 3, 2, 4, 5]


@given(st.integers(0, 1 << 20), st.integers(1, 2000))
def test_every_order_keeps_what_depends_on_what(seed: int, slow: int) -> None:
    program = random_program(np.random.default_rng(seed), TINY)
    before = dependences(program, TINY)
    expected = [(slow * index, slow * index + slow // 3) for index in range(len(program))]
    order = postponed(program, before, expected)
    assert sorted(order) == list(range(len(program)))
    place = {index: number for number, index in enumerate(order)}
    assert all(place[other] < place[index] for index in order for other in before[index])
    assert same(executed(program, TINY), executed([program[index] for index in order], TINY))
