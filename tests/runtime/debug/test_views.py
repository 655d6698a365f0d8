"""Tensors, constants and words as the debugger shows them."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dovetail.isa.configs import find_config
from dovetail.isa.memories import Memory
from dovetail.isa.state import MachineState
from dovetail.runtime.debug.layouts import Record
from dovetail.runtime.debug.views import (
    Constant,
    ConstantPart,
    TensorView,
    view_tensor,
    view_words,
)
from dovetail.runtime.errors import InputError

from .test_layouts import PLAIN

TINY = find_config("tiny")
LAST = TINY.par_depth - 1
SECOND = replace(PLAIN, name="y", root="y", address=148)


@pytest.mark.parametrize(("address", "count"), [(0, 0), (-1, 1), (LAST + 1, 1), (LAST, 2)])
def test_words_that_do_not_exist_are_refused(address: int, count: int) -> None:
    state = MachineState.zeros(TINY, np.zeros(16, np.uint8))
    with pytest.raises(InputError, match=f"required within 0 to {LAST}$"):
        view_words(state, Memory.PAR, address, count)


def test_words_are_copies() -> None:
    state = MachineState.zeros(TINY, np.zeros(16, np.uint8))
    state.par.bias[LAST], state.par.scale[LAST] = 5, 0.5
    state.acc[2:4] = [[1], [2]]
    found = view_words(state, Memory.PAR, LAST, 1)
    assert {name: array.tolist() for name, array in found.arrays.items()} == {
        "bias": [[5] * 4],
        "scale": [[0.5] * 4],
    }
    words = view_words(state, Memory.ACC, 2, 2).arrays["acc"]
    state.acc[:] = 9
    assert words.tolist() == [[1] * 4, [2] * 4]


def shown(number: int, held: dict[int, tuple[int, int, tuple[int, int, int]]]) -> TensorView:
    """A tensor of two of 2x3x5, in DRAM from bytes 100 and 148 on, where byte n is n.

    held: of words of ACT that hold 4 of their number, the tensor, who wrote it, and its place.
    """
    shadow: Any = SimpleNamespace(
        tensor=np.full(20, -1), place=np.zeros((20, 3), np.int64), writers={}
    )
    shadow.writers[Memory.ACT], shadow.writers[None] = np.full(20, -1), np.full(60, -1)
    shadow.writers[None][[37, 38]] = 4
    for word, (tensor, writer, place) in held.items():
        shadow.tensor[word], shadow.writers[Memory.ACT][word] = tensor, writer
        shadow.place[word] = place
    act = np.repeat(np.arange(20, dtype=np.int8)[:, None], 4, axis=1)
    state: Any = SimpleNamespace(act=act, dram=np.arange(240, dtype=np.uint8))
    return view_tensor(Record((PLAIN, SECOND), {}, {}, ()), number, state, shadow)


def test_of_several_copies_in_act_the_last_one_written_counts() -> None:
    found = shown(0, {9: (0, 3, (0, 0, 0)), 5: (0, 7, (0, 0, 0)), 11: (0, 1, (1, 1, 2))})
    assert found.values[0, 0].tolist() == [5, 5, 5, 5, 0]
    assert found.values[1, 2].tolist() == [0, 0, 0, 0, 11]
    assert found.present.sum() == 5
    assert (found.words.tolist(), found.in_dram, found.address) == ([5, 9, 11], False, 100)
    assert found.nchw.shape == (5, 2, 3)


def test_what_is_not_in_act_is_read_from_dram_where_it_was_stored() -> None:
    given = shown(0, {3: (1, 2, (0, 0, 0))})
    assert given.in_dram
    assert given.present.all()
    assert given.values[0, 1].tolist() == [104, 105, 106, 107, 128 - 256]
    stored = shown(1, {})
    assert stored.in_dram
    assert stored.present[:, :, 0].tolist() == [[True, True, False], [False] * 3]
    assert stored.values[0, 1, :4].tolist() == [152 - 256, 153 - 256, 154 - 256, 155 - 256]
    assert not shown(0, {3: (0, 2, (0, 0, 0))}).in_dram


def part(place: tuple[int, ...], address: int, data: Any) -> ConstantPart:
    words = np.asarray(data).reshape(-1, 4).view(np.uint8)
    return ConstantPart(0, place, address, 0, words, np.ones(len(words), bool))


def test_weights_are_put_together_from_the_parts_that_loads_fetch() -> None:
    tiles = (np.arange(2 * 3 * 1 * 2 * 2 * 2) - 20).astype(np.int8).reshape(2, 3, 1, 2, 2, 2)
    flat = tiles.transpose(0, 4, 2, 3, 1, 5).reshape(4, 1, 2, 6)
    halves = [(place, number) for place in range(2) for number in (1, 0)]
    parts = [part((p,), 48 * p + 12 * n, tiles[p].reshape(2, -1)[n]) for p, n in halves]
    whole = Constant("w", Memory.WGT, tuple(parts), tiles.shape)
    assert np.array_equal(whole.ohwi, flat)
    assert np.array_equal(replace(whole, parts=(*parts, parts[1])).ohwi, flat)
    blocks = [part((p, n), 3 * p + n, tiles[p, n]) for p, n in np.ndindex(2, 3)]
    assert np.array_equal(replace(whole, parts=tuple(blocks)).ohwi, flat)
    some = replace(whole, parts=tuple(blocks[1:])).ohwi
    assert np.array_equal(some[2:], flat[2:])
    assert not some[:2, :, :, :2].any()
    with pytest.raises(InputError, match="w has no rows and columns"):
        _ = replace(whole, shape=None).ohwi


def test_values_of_a_constant_are_those_of_each_part_once() -> None:
    first, second = np.arange(-4, 4, dtype=np.int8), np.arange(4, dtype=np.int8)
    parts = part((0,), 0, first), part((1,), 8, second), part((0,), 0, first)
    weights = Constant("w", Memory.WGT, parts, None).values
    assert weights.tolist() == [[[-4, -3], [-2, -1]], [[0, 1], [2, 3]], [[0, 1], [2, 3]]]
    taps = Constant("t", Memory.TAP, parts[:1], None).values
    assert taps.tolist() == [[-4, -3, -2, -1], [0, 1, 2, 3]]
    assert Constant("p", Memory.PAR, parts[:1], None).values[0].tolist() == [252, 253, 254, 255]
