"""A run without data has the cycles of the run with data."""

from dataclasses import fields

import numpy as np
import pytest

from dovetail.isa.config import INSTRUCTION_BYTES
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.isa.encoding import encode
from dovetail.isa.memories import Memory
from dovetail.vta_sim.machine import simulate, time_program
from tests.differential.generate import generate


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_time_does_not_need_data(name: str) -> None:
    for number in range(6):
        case = generate(find_config(name), 31, number)
        state = case.initial()
        before = [state.words(memory).copy() for memory in Memory]
        settings = (case.program_address, len(case.instructions), case.window, case.timing)
        timed = simulate(state, *settings, watchdog=case.watchdog, data=False)
        for memory, words in zip(Memory, before, strict=True):
            np.testing.assert_array_equal(state.words(memory), words)
        done = simulate(state, *settings, watchdog=case.watchdog)
        for field in fields(done):
            if field.name != "state":
                np.testing.assert_equal(getattr(timed, field.name), getattr(done, field.name))


def test_time_of_a_program_alone() -> None:
    config = find_config("zynq7020")
    case = generate(config, 32, 0)
    done = simulate(
        case.initial(), case.program_address, len(case.instructions), case.window, case.timing
    )
    code = b"".join(encode(instruction) for instruction in case.instructions)
    words = np.frombuffer(code, np.uint8).reshape(-1, INSTRUCTION_BYTES)
    timed = time_program(words, case.config, case.program_address, case.timing)
    assert done.finished
    assert timed.counters == done.counters
    np.testing.assert_array_equal(timed.ended, done.ended)
