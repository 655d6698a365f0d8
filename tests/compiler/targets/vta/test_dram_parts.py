"""LOADs and STOREs of a part move the bytes that NumPy cuts out of the padded tensor."""

import numpy as np
import pytest

from dovetail.compiler.targets.vta.dram_parts import load_parts, store_part
from dovetail.compiler.targets.vta.image import Span
from dovetail.compiler.targets.vta.layers.activation import Activation
from dovetail.isa import semantics

from ....isa.loops import random_state
from .programs import TINY

LANES, SIZE, HALO, FILL = TINY.block, (5, 6), (1, 2, 1, 1), 7
X = Activation("x", 3 * LANES, *SIZE, LANES, HALO, FILL)
SRAM, DRAM = 21, 192
WHOLE = ((0, 3), (0, 7), (0, 9))
PARTS = [WHOLE, ((1, 2), (2, 3), (3, 4)), ((2, 1), (0, 2), (4, 5)), ((0, 1), (4, 3), (0, 3))]
"""Blocks, rows and columns, each first and count, halo included."""


@pytest.mark.parametrize("part", PARTS)
def test_a_part_with_its_halo_is_loaded_and_stored_without(part: tuple[Span, Span, Span]) -> None:
    state = random_state(3)
    end = DRAM + X.blocks * SIZE[0] * SIZE[1] * LANES
    stored = state.dram[DRAM:end].view(np.int8).reshape(X.blocks, *SIZE, LANES)
    around = ((0, 0), (HALO[0], HALO[2]), (HALO[1], HALO[3]), (0, 0))
    cut = tuple(slice(first, first + count) for first, count in part)
    whole = np.pad(stored, around, constant_values=FILL)
    counts = tuple(count for _, count in part)
    for load in load_parts(X, part, counts, SRAM, DRAM, TINY.bus_bytes):
        semantics.load(state, load)
    words = state.act[SRAM : SRAM + np.prod(counts)].reshape(*counts, LANES)
    np.testing.assert_array_equal(words, whole[cut])

    words[:] = np.random.default_rng(1).integers(-128, 128, words.shape)
    whole[cut] = words
    before = state.dram.copy()
    semantics.store(state, store_part(X, part, counts, SRAM, DRAM))
    before[DRAM:end] = whole[:, 1:6, 2:8].view(np.uint8).reshape(-1)
    np.testing.assert_array_equal(state.dram, before)
