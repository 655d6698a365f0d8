"""Tokens: enough, none too many, and never more under way than a counter holds."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.targets.vta.check import CheckError, check
from dovetail.compiler.targets.vta.tokens import insert_tokens
from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Unit

from .programs import TINY, executed, random_program, same, simulated

SEEDS = range(60)
UNLIMITED = replace(TINY, token_max=255)


def without_token(
    program: list[Instruction], giver: Unit, taker: Unit, number: int
) -> list[Instruction]:
    """``program`` without the token ``number`` of a pair of units, neither given nor taken."""
    found = Counter[str]()
    changed = []
    for instruction in program:
        if instruction.unit is giver and taker in instruction.post:
            if found["post"] == number:
                instruction = replace(instruction, post=instruction.post - {taker})
            found["post"] += 1
        if instruction.unit is taker and giver in instruction.wait:
            if found["wait"] == number:
                instruction = replace(instruction, wait=instruction.wait - {giver})
            found["wait"] += 1
        changed.append(instruction)
    return changed


def all_tokens(program: list[Instruction]) -> list[tuple[Unit, Unit, int]]:
    """Giver, taker and number of every token."""
    counts = Counter((i.unit, taker) for i in program for taker in i.post)
    return [(*pair, number) for pair, count in counts.items() for number in range(count)]


@pytest.mark.parametrize("token_max", [1, 2, 3, 15])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_program_with_inserted_tokens_passes_the_check(seed: int, token_max: int) -> None:
    config = replace(TINY, token_max=token_max)
    plain = random_program(np.random.default_rng(seed), config)
    check(insert_tokens(plain, config), config)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_inserted_token_can_be_left_out(seed: int) -> None:
    plain = random_program(np.random.default_rng(seed), UNLIMITED)
    program = insert_tokens(plain, UNLIMITED)
    for giver, taker, number in all_tokens(program):
        with pytest.raises(CheckError, match="race"):
            check(without_token(program, giver, taker, number), UNLIMITED)


@pytest.mark.parametrize("token_max", [1, 15])
@pytest.mark.parametrize("latency", [1, 24, 300])
@pytest.mark.parametrize("seed", range(10))
def test_the_simulator_leaves_what_execution_in_order_leaves(
    seed: int, latency: int, token_max: int
) -> None:
    config = replace(TINY, token_max=token_max)
    plain = random_program(np.random.default_rng(seed), config, most=60)
    result = simulated(insert_tokens(plain, config), config, latency)
    assert result.finished
    assert same(result.state, executed(plain, config))


def test_instructions_that_share_nothing_get_no_tokens() -> None:
    rng = np.random.default_rng(5)
    (load,) = [i for i in random_program(rng, TINY, 40) if i.unit is Unit.LOAD][:1]
    assert all_tokens(insert_tokens([load, load], TINY)) == []


def test_a_small_counter_costs_order_but_no_conflict_is_left_open() -> None:
    tight = replace(TINY, token_max=1)
    plain = random_program(np.random.default_rng(11), tight, most=60)
    assert len(all_tokens(insert_tokens(plain, tight))) <= len(
        all_tokens(insert_tokens(plain, UNLIMITED))
    )
