"""Short forms of words in DRAM, by hand and there and back, and the LOAD that reads them."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.isa import semantics
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Load
from dovetail.isa.legality import legality_problem
from dovetail.isa.memories import Memory
from dovetail.isa.nibbles import as_nibbles, fits_nibbles, from_nibbles
from dovetail.isa.short_form import from_short, has_short_form, short_form
from dovetail.isa.state import MachineState

from .loops import random_state

TINY = find_config("tiny")
HEAD = bytes([0x10, 0xF2, 0xAA, 0x55])
"""Multipliers 0, 1, 2 and 15, and what fills the beat."""
ROWS = bytes([0x21, 0x87, 0xF0, 0x9F, 0x11, 0x77, 0x78, 0x08])
WEIGHTS = [[1, 2, 7, -8], [0, -2, -2, -14], [3, 3, 21, 21], [-128, 112, -128, 0]]
"""The weights of HEAD and ROWS, by hand."""


def test_a_word_has_the_weights_worked_out_by_hand() -> None:
    word = np.frombuffer(HEAD + ROWS, np.uint8)[None]
    assert word.size == TINY.nibble_bytes
    assert from_nibbles(word, TINY).tolist() == [WEIGHTS]


@pytest.mark.parametrize(
    "sizes", [(4, 4, 12), (8, 8, 40), (16, 8, 136), (16, 4, 136), (16, 16, 144), (32, 16, 528)]
)
def test_what_fits_comes_back(sizes: tuple[int, int, int]) -> None:
    block, bus, size = sizes
    config = replace(TINY, block=block, bus_bytes=bus)
    rng = np.random.default_rng(block + bus)
    factors = rng.integers(1, 17, (9, block, 1))
    words = (rng.integers(-8, 8, (9, block, block)) * factors).astype(np.int8)
    words[3, 1] = 0
    assert fits_nibbles(words)
    packed = as_nibbles(words, config)
    assert packed.shape == (9, size) == (9, config.nibble_bytes)
    np.testing.assert_array_equal(from_nibbles(packed, config), words)


@pytest.mark.parametrize("lane", [[1, 8, 0, 0], [113, 0, 0, 0], [-9, 2, 0, 0], [-127, 0, 0, 0]])
def test_other_weights_do_not_fit(lane: list[int]) -> None:
    words = np.zeros((2, 4, 4), np.int8)
    words[1, 2] = lane
    assert not fits_nibbles(words)
    assert not fits_nibbles(words[::-1])


def test_a_load_makes_weights_and_pads_whole_words() -> None:
    state = random_state(5)
    for at in (40, 52):
        state.dram[at : at + 12] = np.frombuffer(HEAD + ROWS, np.uint8)
    load = Load(
        memory=Memory.WGT,
        sram_address=3,
        dram_address=40,
        count_x=2,
        pad_x_after=1,
        pad_value=-3,
        nibbles=True,
    )
    expected = state.wgt.copy()
    expected[3:5], expected[5] = WEIGHTS, -3
    assert legality_problem(load, TINY) is None
    semantics.load(state, load)
    np.testing.assert_array_equal(state.wgt, expected)


def test_nibbles_are_legal_in_wgt_where_the_configuration_has_them() -> None:
    load = Load(memory=Memory.WGT, sram_address=0, dram_address=4, nibbles=True)
    assert legality_problem(load, TINY) is None
    to_act = replace(load, memory=Memory.ACT)
    assert legality_problem(to_act, TINY) == "nibbles needs memory wgt, par or tab"
    odd = legality_problem(replace(load, dram_address=2), TINY)
    assert odd == "dram_address = 2; required a multiple of 4, the bytes of a beat, with nibbles"
    without = replace(TINY, nibble_weights=False)
    assert legality_problem(load, without) == "nibbles = 1 of wgt; tiny has no nibble_weights"
    assert without.fingerprint != TINY.fingerprint
    assert "nibble_weights" not in without.identity


def test_scales_alone_make_parameters_without_biases() -> None:
    scales = np.arange(8, dtype=np.float32) + 0.5
    dram = np.zeros(256, np.uint8)
    dram[32:64] = scales.view(np.uint8)
    state = MachineState.zeros(TINY, dram)
    state.write_words(Memory.PAR, np.arange(4), np.full((4, 32), 0xAA, np.uint8))
    load = Load(memory=Memory.PAR, sram_address=1, dram_address=32, count_x=2, nibbles=True)
    semantics.load(state, load)
    words = state.words(Memory.PAR)[1:3]
    assert not words[:, :16].any()
    assert words[:, 16:].tobytes() == scales.tobytes()
    assert (state.words(Memory.PAR)[[0, 3]] == 0xAA).all()


def test_one_bias_and_one_scale_make_parameters_of_all_lanes() -> None:
    config = replace(TINY, block=8, bus_bytes=8)
    dram = np.zeros(256, np.uint8)
    dram[32:36], dram[40:44] = (np.array([n], np.int32).view(np.uint8) for n in (-7, 9))
    dram[36:40], dram[44:48] = (np.array([n], np.float32).view(np.uint8) for n in (0.5, 2))
    state = MachineState.zeros(config, dram)
    load = Load(memory=Memory.PAR, sram_address=1, dram_address=32, count_x=2, nibbles=True, gap=1)
    assert load.same
    semantics.load(state, load)
    assert state.par.bias[1:3].tolist() == [[-7] * 8, [9] * 8]
    assert state.par.scale[1:3].tolist() == [[0.5] * 8, [2.0] * 8]
    assert not state.words(Memory.PAR)[[0, 3]].any()


def test_a_beat_makes_four_words_of_a_table() -> None:
    config = replace(TINY, block=16, bus_bytes=8)
    state = MachineState.zeros(config, np.arange(256, dtype=np.uint8))
    load = Load(memory=Memory.TAB, sram_address=4, dram_address=8, count_x=4, nibbles=True)
    assert legality_problem(load, config) is None
    semantics.load(state, load)
    words = state.words(Memory.TAB)[4:8]
    assert words.tolist() == [[n, n + 1] * 8 for n in (8, 10, 12, 14)]
    odd = legality_problem(replace(load, count_x=6), config)
    assert odd == "count_x = 6; required a multiple of 4, the words in a beat, with nibbles of tab"


@pytest.mark.parametrize(
    ("memory", "same"), [(Memory.PAR, False), (Memory.PAR, True), (Memory.TAB, False)]
)
def test_short_forms_are_found_and_come_back(memory: Memory, same: bool) -> None:
    config = find_config("zynq7020")
    rng = np.random.default_rng(3)
    short = rng.integers(1, 256, (5, config.short_bytes(memory, same=same))).astype(np.uint8)
    words = from_short(short, memory, config, same=same)
    assert words.shape == (5, config.word_bytes(memory))
    assert has_short_form(words, memory, config, same=same).all()
    np.testing.assert_array_equal(short_form(words, memory, config, same=same), short)
    words[3, 1] ^= 1
    found = has_short_form(words, memory, config, same=same)
    assert found.tolist() == [True, True, True, False, True]


def test_short_forms_of_constants_are_legal_where_the_configuration_has_them() -> None:
    without = replace(TINY, short_constants=False)
    for memory in (Memory.PAR, Memory.TAB):
        load = Load(memory=memory, sram_address=0, dram_address=4, count_x=4, nibbles=True)
        assert legality_problem(load, TINY) is None
        problem = f"nibbles = 1 of {memory.value}; tiny has no short_constants"
        assert legality_problem(load, without) == problem
    assert "short_constants" in TINY.identity
    assert "short_constants" not in without.identity
