"""A token too few: the instruction that does not wait is named, and what it ought to wait for."""

from pathlib import Path

import pytest

from dovetail.isa.memories import Unit
from dovetail.runtime.profile.flows import Flow, token_flows

from .planted import Subject, changed_instruction, subject, without_token


@pytest.fixture(scope="module")
def digits(digits_model: Path) -> Subject:
    return subject(digits_model)


def flows(whole: Subject, giver: Unit, taker: Unit) -> list[Flow]:
    return [
        flow
        for flow in token_flows(whole.program)
        if whole.program[flow.source].unit is giver and whole.program[flow.target].unit is taker
    ]


@pytest.mark.parametrize(
    ("giver", "taker"),
    [
        (Unit.GEMM, Unit.LOAD),
        (Unit.GEMM, Unit.VECTOR),
        (Unit.VECTOR, Unit.GEMM),
        (Unit.VECTOR, Unit.STORE),
    ],
)
def test_a_removed_token_is_told_to_the_instruction_that_waited_for_it(
    digits: Subject, giver: Unit, taker: Unit
) -> None:
    for flow in flows(digits, giver, taker):
        found = digits.debug(without_token(digits, flow)).check()
        if found.finding is not None:
            break
    assert found.finding is not None
    assert found.cause is not None
    assert (found.cause.kind, found.cause.certain) == ("order", True)
    assert found.cause.instruction.index == flow.target
    layer = digits.part.layers[digits.layer_of[flow.target]].name
    assert found.cause.instruction.layer == layer
    assert f"({giver.name}): " in found.cause.reason


@pytest.mark.parametrize(
    ("giver", "taker", "which"), [(Unit.LOAD, Unit.GEMM, 2), (Unit.VECTOR, Unit.LOAD, -1)]
)
def test_a_race_that_changes_no_byte_is_reported_all_the_same(
    digits: Subject, giver: Unit, taker: Unit, which: int
) -> None:
    flow = flows(digits, giver, taker)[which]
    found = digits.debug(without_token(digits, flow)).check()
    assert found.finding is None
    assert not found.passes
    assert found.unproved is not None
    assert "are not ordered by tokens" in found.unproved


def test_a_program_that_hangs_says_who_waits_for_what(digits: Subject) -> None:
    flow = flows(digits, Unit.GEMM, Unit.VECTOR)[0]
    sound = digits.program[flow.target]
    hung = changed_instruction(digits, flow.source, post=frozenset())
    debugger = digits.debug(hung)
    assert debugger.error is not None
    assert debugger.error.startswith("WATCHDOG")
    debugger.resume()
    status = next(each for each in debugger.units() if each.unit is sound.unit)
    assert "a token from GEMM" in status.waits_for
