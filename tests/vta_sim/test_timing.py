"""The time of a program alone is that of a run with data."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.isa.config import INSTRUCTION_BYTES
from dovetail.isa.configs import CONFIGS, find_config
from dovetail.isa.footprint import with_bank_masks
from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Unit
from dovetail.isa.program import program_to_bytes
from dovetail.vta_sim.errors import SimulationError
from dovetail.vta_sim.machine import simulate
from dovetail.vta_sim.timing import time_program
from tests.differential.generate import generate
from tests.instructions import gemm


def _words(program: Sequence[Instruction]) -> NDArray[np.uint8]:
    return np.frombuffer(program_to_bytes(program), np.uint8).reshape(-1, INSTRUCTION_BYTES)


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_time_does_not_need_data(name: str) -> None:
    finished = 0
    for number in range(8):
        case = generate(find_config(name), 31, number)
        program, address = case.instructions, case.program_address
        done = simulate(case.initial(), address, len(program), case.window, case.timing, 0)
        finished += done.finished
        if done.finished:
            timed = time_program(_words(program), replace(case.config, dram=case.timing), address)
            assert timed.counters == done.counters
            np.testing.assert_array_equal(timed.accepted, done.accepted)
            np.testing.assert_array_equal(timed.ended, done.ended)
    assert finished > 2


def test_a_program_that_never_ends_or_would_be_refused_has_no_time() -> None:
    config = find_config("tiny")
    waits = with_bank_masks(gemm((3, 1, 1, 0), reduction=1, wait=frozenset({Unit.LOAD})), config)
    with pytest.raises(SimulationError, match="instruction 0"):
        time_program(_words([waits]), config)
    with pytest.raises(SimulationError, match="stops with ILLEGAL_INSTRUCTION at instruction 1"):
        time_program(
            np.concatenate(
                [_words([replace(waits, wait=frozenset())]), np.zeros((1, 64), np.uint8)]
            ),
            config,
        )
