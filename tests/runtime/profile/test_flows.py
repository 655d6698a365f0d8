"""Who posted the token that an instruction took."""

from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory, Unit
from dovetail.runtime.profile.flows import Flow, token_flows

LOAD, STORE = frozenset({Unit.LOAD}), frozenset({Unit.STORE})


def load(wait: frozenset[Unit] = frozenset(), post: frozenset[Unit] = frozenset()) -> Load:
    return Load(memory=Memory.ACT, dram_address=0, sram_address=0, wait=wait, post=post)


def store(wait: frozenset[Unit] = frozenset(), post: frozenset[Unit] = frozenset()) -> Store:
    return Store(dram_address=0, sram_address=0, wait=wait, post=post)


def test_tokens_are_taken_in_the_order_in_which_they_are_posted() -> None:
    program = [load(post=STORE), load(post=STORE), store(LOAD, LOAD), store(LOAD), load(STORE)]
    assert token_flows(program) == [Flow(0, 2), Flow(1, 3), Flow(2, 4)]


def test_a_post_may_come_after_its_wait_in_the_program() -> None:
    assert token_flows([store(LOAD), load(post=STORE)]) == [Flow(1, 0)]


def test_tokens_that_nobody_takes_are_no_flows() -> None:
    assert token_flows([load(post=STORE)]) == []
