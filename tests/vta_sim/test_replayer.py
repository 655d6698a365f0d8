"""A launch replayed step by step leaves what the simulator leaves."""

from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.isa.launch import Launch
from dovetail.isa.memories import Memory
from dovetail.isa.program import program_from_bytes
from dovetail.isa.semantics import execute
from dovetail.isa.state import MachineState
from dovetail.runtime.accelerator.device import prepare_launch
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.vta_sim.machine import simulate
from dovetail.vta_sim.replayer import Replayer


@pytest.fixture(scope="module")
def launch(digits_model: Path) -> Launch:
    module = compile(digits_model, target="vta:tiny")
    return prepare_launch(accelerator_part(module), random_inputs(module))


def equal(one: MachineState, other: MachineState) -> bool:
    return np.array_equal(one.dram, other.dram) and all(
        np.array_equal(one.words(memory), other.words(memory)) for memory in Memory
    )


def test_all_steps_in_program_order_leave_what_the_semantics_leave(launch: Launch) -> None:
    first = launch.program_address
    program = program_from_bytes(launch.dram[first : first + 64 * launch.program_count].tobytes())
    wanted = MachineState.zeros(launch.config, launch.dram.copy())
    replayer = Replayer(launch)
    for index, instruction in enumerate(program):
        execute(wanted, instruction)
        replayer.apply([2 * index] if instruction.unit != 3 else [2 * index, 2 * index + 1])
        assert index % 20 or equal(replayer.state, wanted), index
    assert equal(replayer.state, wanted)


def test_it_ends_as_a_whole_run_does_and_begins_again(launch: Launch) -> None:
    state = MachineState.zeros(launch.config, launch.dram.copy())
    window = (0, launch.dram.size - 1)
    done = simulate(state, launch.program_address, launch.program_count, window)
    assert done.finished
    replayer = Replayer(launch)
    steps = [2 * index for index in range(launch.program_count)]
    replayer.apply([*steps, 2 * launch.program_count - 1])
    assert equal(replayer.state, state)
    replayer.restart()
    assert np.array_equal(replayer.state.dram, launch.dram)
    assert not replayer.state.act.any()
