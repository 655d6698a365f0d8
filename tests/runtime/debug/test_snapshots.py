"""The RTL's memories between instructions are those that the simulator replays."""

from pathlib import Path

import pytest

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.runtime.debug.faults import first_fault, first_late
from dovetail.runtime.debug.moments import Event
from dovetail.runtime.debug.session import Session
from dovetail.runtime.devices import open_launcher


@pytest.fixture(scope="module")
def session(digits_model: Path) -> Session:
    module = compile(digits_model, target="vta:tiny")
    return Session(module, random_inputs(module), "rtl")


def test_the_rtl_departs_nowhere(session: Session) -> None:
    assert first_late(session) is None
    assert first_fault(session, open_launcher("rtl")) is None


def test_the_rtls_words_are_there_when_an_instruction_has_ended(session: Session) -> None:
    for index in list(session.record.frames)[::12]:
        session.run_to_instruction(index, Event.ENDED)
        (touch,) = (words for _, words in session.footprints.writes(index))
        assert (session.state.act[touch] == session.replayed_state.act[touch]).all()
