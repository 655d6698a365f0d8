"""A sample of random programs on all three: ``make differential`` runs as many as you like."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from dovetail.isa.configs import find_config
from dovetail.isa.errors import ConfigError
from dovetail.isa.finishes import OwnFinish
from dovetail.isa.instructions import Finish, Instruction, Load, Store, Vector
from dovetail.isa.memories import Memory, Unit
from dovetail.isa.state import MachineState
from tests.differential import compare as comparison
from tests.differential.compare import compare
from tests.differential.configs import differential_config
from tests.differential.generate import Case, generate
from tests.differential.minimise import minimise
from tests.differential.order import ends, order_with_tokens, unordered_pair

TINY = find_config("tiny")
TODAY = date.today().toordinal()
LOAD = Load(memory=Memory.ACT, sram_address=0, dram_address=0x1000, act_write_banks=1)
STORE = Store(sram_address=0, dram_address=0x1000, act_read_banks=1)


@pytest.mark.parametrize(("config", "programs", "seed"), [("tiny", 40, 1), ("tiny", 30, TODAY)])
def test_semantics_simulator_and_rtl_agree(config: str, programs: int, seed: int) -> None:
    hardware = differential_config(config)
    cases = [generate(hardware, seed, number) for number in range(programs)]
    differences = {number: d.first for number, d in enumerate(compare(cases)) if d}
    assert not differences, f"{differences}; see: make differential CONFIG={config} SEED={seed}"


def test_they_agree_on_other_configurations() -> None:
    test_semantics_simulator_and_rtl_agree("fast_core", 15, 1)


def test_they_agree_with_a_finish_of_another_package(leaky: OwnFinish) -> None:
    config = replace(differential_config("narrow"), finish="leaky")
    cases = [generate(config, 1, number) for number in range(15)]
    vectors = [it for case in cases for it in case.instructions if isinstance(it, Vector)]
    assert sum(each.finish is Finish.CUSTOM for each in vectors) > 5
    assert not {number: d.first for number, d in enumerate(compare(cases)) if d}


def test_semantics_and_simulator_agree_where_every_address_wraps() -> None:
    hardware = differential_config("mixed")
    cases = [generate(hardware, 1, number) for number in range(15)]
    found = compare(cases, ["semantics", "sim"])
    assert not {number: d.first for number, d in enumerate(found) if d}


def test_a_case_is_the_same_every_time() -> None:
    first, second = generate(TINY, 5, 3), generate(TINY, 5, 3)
    assert first.instructions == second.instructions
    np.testing.assert_array_equal(first.initial().dram, second.initial().dram)


def test_cases_use_all_units_and_every_pair_of_them() -> None:
    instructions = [each for number in range(20) for each in generate(TINY, 2, number).instructions]
    assert {each.unit for each in instructions} == set(Unit)
    pairs = {(each.unit, other) for each in instructions for other in each.wait}
    assert len(pairs) == 12


def test_the_proof_of_order_finds_a_race() -> None:
    assert unordered_pair([LOAD, STORE], TINY) == (0, 1)
    ordered = order_with_tokens([LOAD, STORE], TINY, np.random.default_rng(0))
    assert unordered_pair(ordered, TINY) is None
    late: list[Instruction] = [ordered[0], replace(ordered[1], wait=frozenset())]
    assert unordered_pair(late, TINY) == (0, 1)


def test_a_wait_for_an_earlier_token_orders_nothing_later() -> None:
    post, wait = frozenset({Unit.STORE}), frozenset({Unit.LOAD})
    other = replace(LOAD, sram_address=1, dram_address=0x2000)
    program: list[Instruction] = [
        replace(other, post=post),
        replace(LOAD, post=post),
        replace(STORE, wait=wait),
    ]
    assert unordered_pair(program, TINY) == (1, 2)


def test_a_program_that_waits_for_nobody_does_not_end() -> None:
    assert not ends([replace(STORE, wait=frozenset({Unit.LOAD}))], TINY)
    posts = [replace(LOAD, post=frozenset({Unit.STORE}))] * (TINY.token_max + 1)
    assert ends(posts[:-1], TINY)
    assert not ends(posts, TINY)


def test_a_failing_program_is_cut_to_the_instruction_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wrong semantics of STORE, seen by the simulator: one STORE of one word is left."""
    real = comparison.semantics.execute

    def wrong(state: MachineState, instruction: Instruction) -> None:
        real(state, instruction)
        if isinstance(instruction, Store):
            state.dram[0] ^= 1

    monkeypatch.setattr(comparison.semantics, "execute", wrong)
    case = _with_one_store()
    small = minimise(case, ["semantics", "sim"])
    (store,) = small.instructions
    assert isinstance(store, Store)
    assert store.count_x * store.count_y * store.count_z == 1


def _with_one_store() -> Case:
    for number in range(100):
        case = generate(TINY, 9, number)
        if sum(isinstance(each, Store) for each in case.instructions) == 1:
            return case
    raise AssertionError("no case with one STORE")


def test_an_unknown_configuration_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"'huge'; there are: tiny, .*, narrow, mixed"):
        differential_config("huge")
