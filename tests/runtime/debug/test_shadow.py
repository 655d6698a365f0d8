"""What words of ACT are known to hold, after loads made by hand."""

import numpy as np
import pytest

from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory
from dovetail.runtime.debug.layouts import Record, TensorLayout
from dovetail.runtime.debug.shadow import NOBODY, Footprints, Shadow

TINY = find_config("tiny")
ADDRESS, HEIGHT, WIDTH = 256, 3, 5
LAYOUT = TensorLayout(
    name="x",
    shape=(1, HEIGHT, WIDTH, 8),
    root="x",
    addend=False,
    first_block=0,
    blocks=2,
    channels=8,
    height=HEIGHT,
    width=WIDTH,
    halo=(0, 0, 0, 0),
    fill=None,
    places=None,
    grid=None,
    address=ADDRESS,
    image=None,
    lanes=4,
)
"""An activation in DRAM: two blocks of four channels."""


def loaded(*loads: Load) -> Shadow:
    record = Record((LAYOUT,), {}, {}, ())
    shadow = Shadow(loads, TINY, 1024, record, Footprints(loads, TINY))
    for index in range(len(loads)):
        shadow.apply(2 * index + 1)
    return shadow


def test_words_of_an_activation_are_known_by_their_addresses() -> None:
    # The second block's last two rows but for a column, a column of padding before them.
    first = 4 * (WIDTH * (HEIGHT + 1) + 1)
    load = Load(
        memory=Memory.ACT,
        sram_address=7,
        dram_address=ADDRESS + first,
        count_x=WIDTH - 1,
        count_y=2,
        dram_stride_y=4 * WIDTH,
        sram_stride_y=WIDTH,
        pad_x_before=1,
    )
    shadow = loaded(load)
    words = 7 + np.arange(2 * WIDTH)
    assert set(np.flatnonzero(shadow.tensor == 0)) == set(words)
    places = [(1, row, column) for row in (1, 2) for column in range(WIDTH)]
    assert [tuple(place) for place in shadow.place[words]] == places
    starts = shadow.sources[Memory.ACT][words].reshape(2, WIDTH)
    assert (starts[:, 0] == NOBODY).all()
    rows = ADDRESS + first + 4 * WIDTH * np.arange(2)
    np.testing.assert_array_equal(starts[:, 1:], rows[:, None] + 4 * np.arange(WIDTH - 1))


@pytest.mark.parametrize(
    "empty", [{"count_x": 0, "pad_x_after": 4}, {"count_y": 0, "pad_y_after": 1}]
)
def test_a_fill_makes_words_unknown_whatever_its_address(empty: dict[str, int]) -> None:
    load = Load(memory=Memory.ACT, sram_address=0, dram_address=ADDRESS, count_x=4)
    fill = Load(memory=Memory.ACT, sram_address=0, dram_address=ADDRESS, **{"count_x": 4, **empty})
    assert (loaded(load).tensor[:4] == 0).all()
    shadow = loaded(load, fill)
    assert (shadow.tensor == NOBODY).all()
    assert (shadow.sources[Memory.ACT] == NOBODY).all()
    assert (shadow.writers[Memory.ACT][:4] == 1).all()
