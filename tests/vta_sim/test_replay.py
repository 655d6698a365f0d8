"""Compiled instructions give what ``dovetail.isa.semantics`` gives, for any instruction."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dovetail.isa import semantics
from dovetail.isa.config import HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.isa.encoding import encode
from dovetail.isa.instructions import Gemm, Instruction, Load, Store
from dovetail.isa.memories import Memory
from dovetail.isa.state import MachineState
from dovetail.isa.table import decode_table
from dovetail.vta_sim import replay
from dovetail.vta_sim.errors import SimulationError
from dovetail.vta_sim.native.library import Library
from dovetail.vta_sim.native.machine_code import build
from tests.differential.generate import generate
from tests.instructions import gemm

CONFIGS = ("tiny", "zynq7020", "ecp5_85", "large")


def apply(state: MachineState, instruction: Instruction) -> None:
    """One instruction, as the simulator does it."""
    word = np.frombuffer(encode(instruction), np.uint8)[None]
    steps = [0, 1] if isinstance(instruction, Store) else [0]
    replay.replay(state, decode_table(word, state.config), np.array(steps, np.int64))


def assert_same(state: MachineState, instruction: Instruction) -> None:
    """Both ways have the same effect on every memory."""
    fast, slow = deepcopy(state), deepcopy(state)
    apply(fast, instruction)
    semantics.execute(slow, instruction)
    assert np.array_equal(fast.dram, slow.dram), instruction
    for memory in Memory:
        assert np.array_equal(fast.words(memory), slow.words(memory)), f"{memory} {instruction}"


@pytest.mark.parametrize("name", CONFIGS)
def test_random_instructions(name: str) -> None:
    for number in range(25):
        case = generate(find_config(name), 7, number)
        state = case.initial()
        for instruction in case.instructions:
            assert_same(state, instruction)


def convolutions(config: HardwareConfig, seed: int, count: int) -> Iterator[Gemm]:
    """Loop nests as compilers make them: kernel, channel blocks, rows, columns, output blocks."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        kernel, inputs, outputs = rng.integers(1, 4), rng.integers(1, 5), rng.integers(1, 4)
        width, height = rng.integers(1, 8), rng.integers(1, 5)
        step = rng.integers(1, 3)
        line = step * width + kernel
        yield Gemm(
            act_address=int(rng.integers(config.act_depth)),
            wgt_address=int(rng.integers(config.wgt_depth)),
            acc_address=int(rng.integers(config.acc_depth)),
            extent=tuple(map(int, (kernel, kernel, inputs, width, height, outputs))),
            act_stride=tuple(map(int, (1, line, 50, step, step * line, 0))),
            wgt_stride=tuple(map(int, (1, kernel, kernel**2, 0, 0, kernel**2 * inputs))),
            acc_stride=tuple(map(int, (0, 0, 0, 1, width, width * height))),
            reduction=7,
            accumulate=bool(rng.random() < 0.3),
        )


@pytest.fixture(params=["this processor", "portable"])
def code(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code with and without what only some processors have."""
    if request.param == "portable":
        monkeypatch.setattr(replay, "_library", portable_library)


@cache
def portable_library(lanes: int, finish: None) -> Library:
    return build([replay.replay_steps], lanes, portable=True)


@pytest.mark.usefixtures("code")
@pytest.mark.parametrize("name", CONFIGS)
def test_convolutions(name: str) -> None:
    config = find_config(name)
    state = generate(config, 8, 0).initial()
    for each in convolutions(config, 3, 60):
        assert_same(state, each)
        # Reduced levels that move ACC, and levels that meet at one address.
        assert_same(state, replace(each, reduction=5))
        assert_same(state, replace(each, acc_stride=(0, 0, 0, 1, 1, 1)))


@pytest.mark.parametrize("tiles", [63, 64, 65, 4095])
@pytest.mark.parametrize("value", [-128, 127])
def test_largest_sums_are_exact(tiles: int, value: int) -> None:
    state = MachineState.zeros(find_config("zynq7020"), np.zeros(64, np.uint8))
    state.act[...], state.wgt[...] = value, -128
    state.wgt[:, ::2, ::3] = 1
    assert_same(state, gemm((tiles, 1, 1, 0), (2, 5, 0, 1), reduction=1))


def test_sums_wrap_at_32_bits() -> None:
    state = MachineState.zeros(find_config("tiny"), np.zeros(64, np.uint8))
    state.act[...], state.wgt[...] = -128, -128
    state.acc[...] = np.iinfo(np.int32).max - 5
    first = next(convolutions(state.config, 1, 1))
    assert_same(state, replace(first, accumulate=True))


def test_blocks_that_wrap_round_their_memory() -> None:
    config = find_config("tiny")
    state = generate(config, 9, 0).initial()
    load = Load(
        memory=Memory.ACT,
        sram_address=config.act_depth - 10,
        dram_address=state.dram_base + 64,
        count_x=4,
        count_y=5,
        dram_stride_y=32,
        sram_stride_y=6,
        pad_x_before=1,
        pad_x_after=1,
        pad_value=-3,
    )
    assert_same(state, load)
    assert_same(state, replace(load, sram_address=0))
    assert_same(state, replace(load, sram_address=100, sram_stride_y=-6, dram_stride_y=-16))
    store = Store(
        dram_address=state.dram_base + 256,
        sram_address=config.act_depth - 10,
        count_x=4,
        count_y=5,
        dram_stride_y=-32,
        sram_stride_y=6,
    )
    assert_same(state, store)
    assert_same(state, replace(store, sram_address=0, dram_stride_y=16))


def test_an_array_with_gaps_is_refused() -> None:
    config = find_config("tiny")
    state = MachineState.zeros(config, np.zeros(256, np.uint8)[::2])
    load = Load(memory=Memory.ACT, sram_address=0, dram_address=0)
    with pytest.raises(SimulationError, match="dram has strides"):
        apply(state, load)


def test_an_array_of_another_size_is_refused() -> None:
    state = MachineState.zeros(find_config("tiny"), np.zeros(256, np.uint8))
    load = Load(memory=Memory.ACT, sram_address=0, dram_address=0)
    with pytest.raises(SimulationError, match="acc has shape"):
        apply(replace(state, acc=state.acc[:5]), load)
