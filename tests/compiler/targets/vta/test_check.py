"""The checker: every fault it knows, beside a program without it."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.targets.vta.check import CheckError, check
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Instruction, Load, Store, Vector
from dovetail.isa.memories import Memory, Unit
from tests.instructions import gemm

from .programs import TINY, draw, simulated

TO_LOAD, TO_GEMM, TO_STORE = (frozenset({u}) for u in (Unit.LOAD, Unit.GEMM, Unit.STORE))

LOAD = with_bank_masks(Load(memory=Memory.ACT, sram_address=8, dram_address=64, count_x=4), TINY)
STORE = with_bank_masks(Store(sram_address=8, dram_address=128, count_x=4), TINY)
VECTOR = with_bank_masks(
    Vector(
        source=Memory.ACT,
        destination=Memory.ACT,
        source_address=0,
        destination_address=0,
        extent=(1, 4, 1, 1, 1),
        source_stride=(0, 1, 0, 0, 0),
        destination_stride=(1, 0, 0, 0),
    ),
    TINY,
)


def test_a_store_that_waits_for_its_load_passes() -> None:
    check([replace(LOAD, post=TO_STORE), replace(STORE, wait=TO_LOAD)], TINY)


def test_a_race_names_both_instructions_and_the_memory() -> None:
    with pytest.raises(CheckError, match=r"race in act: instructions 0 \(LOAD\) and 1 \(STORE\)"):
        check([LOAD, STORE], TINY)


def test_a_race_in_dram_is_found() -> None:
    store = replace(STORE, sram_address=100, dram_address=LOAD.dram_address + 8)
    with pytest.raises(CheckError, match="race in dram: instructions 0"):
        check([LOAD, store], TINY)


def test_a_race_through_a_third_unit_that_orders_nothing_is_found() -> None:
    other = replace(LOAD, sram_address=500, post=TO_GEMM)
    between = with_bank_masks(gemm(act_address=600, wait=TO_LOAD), TINY)
    program = [LOAD, other, between, STORE]
    with pytest.raises(CheckError, match=r"instructions 0 .* and 3"):
        check([with_bank_masks(i, TINY) for i in program], TINY)


def test_order_against_the_program_is_a_race() -> None:
    """The token makes the result certain, but it is not that of the program's order."""
    load = replace(LOAD, wait=TO_STORE)
    with pytest.raises(CheckError, match="race in act"):
        check([load, replace(STORE, post=TO_LOAD)], TINY)


def test_a_token_that_is_never_given_is_a_deadlock() -> None:
    with pytest.raises(CheckError, match=r"deadlock: instructions 1 \(STORE\)"):
        check([LOAD, replace(STORE, wait=TO_LOAD)], TINY)


def test_a_token_that_is_never_taken_is_reported() -> None:
    with pytest.raises(CheckError, match=r"instruction 0 \(LOAD\) gives STORE a token"):
        check([replace(LOAD, post=TO_STORE), replace(STORE, sram_address=200)], TINY)


def test_more_tokens_than_a_counter_holds_are_a_deadlock() -> None:
    giving = [replace(LOAD, post=TO_STORE)] * (TINY.token_max + 1)
    last = replace(LOAD, post=TO_GEMM)
    between = with_bank_masks(gemm(act_address=8, wait=TO_LOAD, post=TO_STORE), TINY)
    first = replace(STORE, wait=TO_LOAD | TO_GEMM)
    taking = [first, *[replace(STORE, wait=TO_LOAD)] * TINY.token_max]
    with pytest.raises(CheckError, match="deadlock"):
        check([*giving, last, between, *taking], TINY)
    check([*giving, last, between, *taking], replace(TINY, token_max=TINY.token_max + 1))


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (replace(LOAD, dram_address=66), "dram_address = 66; required a multiple of 4"),
        (replace(LOAD, act_write_banks=3), "bank masks"),
        (
            with_bank_masks(replace(LOAD, sram_address=TINY.act_depth - 2), TINY),
            f"act word {TINY.act_depth + 1}; there are {TINY.act_depth}",
        ),
        (
            with_bank_masks(replace(LOAD, count_y=2, sram_stride_y=3), TINY),
            "it writes one word twice",
        ),
        (
            with_bank_masks(replace(VECTOR, destination_address=1), TINY),
            "it reads a word after writing it",
        ),
    ],
)
def test_an_instruction_that_is_wrong_by_itself_is_named(
    instruction: Instruction, message: str
) -> None:
    alone = with_bank_masks(replace(STORE, sram_address=900), TINY)
    with pytest.raises(CheckError, match=f"instruction 1 .*{message}"):
        check([alone, instruction], TINY)


@pytest.mark.parametrize("place", [-1, 0])
def test_a_vector_may_write_words_it_has_read(place: int) -> None:
    check(
        [with_bank_masks(replace(VECTOR, source_address=8, destination_address=8 + place), TINY)],
        TINY,
    )


@pytest.mark.parametrize("seed", range(80))
def test_the_checker_and_the_simulator_agree_on_deadlock(seed: int) -> None:
    """Tokens at random, not all in an order that can be: both must say whether the run ends."""
    rng = np.random.default_rng(seed)
    program = [draw(rng, TINY) for _ in range(10)]
    for _ in range(6):
        giver, taker = sorted(rng.choice(10, 2, replace=False))
        if rng.random() < 0.2:
            giver, taker = taker, giver
        first, second = program[giver].unit, program[taker].unit
        if first is second or second in program[giver].post or first in program[taker].wait:
            continue
        program[giver] = replace(program[giver], post=program[giver].post | {second})
        program[taker] = replace(program[taker], wait=program[taker].wait | {first})
    try:
        check(program, TINY)
        ends = True
    except CheckError as error:
        ends = "deadlock" not in str(error)
    assert simulated(program, TINY).finished == ends
