"""Known contents of words, and their writers, after instructions made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Instruction, Load, Store, Vector
from dovetail.isa.memories import Memory
from dovetail.runtime.accelerator.layouts import ImageLayout, OwnWindows
from dovetail.runtime.debug.layouts import Frame, Record, TensorLayout
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
    spare=0,
    image=None,
    lanes=4,
)
"""An activation in DRAM: two blocks of four channels."""


def shadowed(
    *program: Instruction, layout: TensorLayout = LAYOUT, frame: Frame | None = None
) -> Shadow:
    """Before a program; ``frame`` is that of its first instruction."""
    record = Record((layout,), {0: (frame,)} if frame else {}, {}, ())
    return Shadow(program, TINY, 1024, record, Footprints(program, TINY))


def loaded(
    *program: Instruction, layout: TensorLayout = LAYOUT, frame: Frame | None = None
) -> Shadow:
    """After a program."""
    shadow = shadowed(*program, layout=layout, frame=frame)
    for index in range(len(program)):
        shadow.apply(2 * index + 1)
    return shadow


def known(shadow: Shadow) -> dict[int, tuple[int, ...]]:
    """The place of each word of ACT whose tensor is known."""
    return {
        int(word): tuple(shadow.place[word].tolist()) for word in np.flatnonzero(shadow.tensor == 0)
    }


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


ROWS = {"count_x": 3, "count_y": 2, "count_z": 2, "dram_stride_y": 64, "dram_stride_z": -256}


@pytest.mark.parametrize(
    "moved",
    [
        Load(memory=Memory.ACT, sram_address=0, dram_address=512, sram_stride_y=3, **ROWS),
        Load(memory=Memory.WGT, sram_address=0, dram_address=512, count_x=3),
        Load(memory=Memory.ACC, sram_address=0, dram_address=512, sram_stride_y=3, **ROWS),
        Load(memory=Memory.ACT, sram_address=0, dram_address=509, step=6, row_end=99, **ROWS),
        Load(memory=Memory.ACT, sram_address=0, count_y=2, dram_stride_y=-16, sram_stride_y=1),
        Store(sram_address=0, dram_address=512, sram_stride_y=3, **ROWS),
    ],
)
def test_words_of_dram_are_those_of_all_bytes_that_move(moved: Load | Store) -> None:
    memory = moved.memory if isinstance(moved, Load) else Memory.ACT
    size = TINY.word_bytes(memory)
    step = (moved.step if isinstance(moved, Load) else 0) or size
    expected = set()
    for z, y, x in np.ndindex(moved.count_z, moved.count_y, moved.count_x):
        first = moved.dram_address + z * moved.dram_stride_z + y * moved.dram_stride_y + x * step
        expected |= {(first + byte) % (1 << 32) // TINY.block for byte in range(size)}
    found = Footprints((moved,), TINY)
    of_dram, of_scratchpad = (
        (found.reads(0), found.writes(0))
        if isinstance(moved, Load)
        else (found.writes(0), found.reads(0))
    )
    ((space, words),) = of_dram if isinstance(moved, Load) else of_dram[-1:]
    assert space is None
    assert words.tolist() == sorted(expected)
    assert [space for space, _ in of_scratchpad] == [memory]
    assert found.reads(0) is found.reads(0)


def test_who_wrote_a_word_is_known_when_it_is_read() -> None:
    shadow = shadowed(
        Load(memory=Memory.ACT, sram_address=0, dram_address=256, count_x=4),
        Store(sram_address=1, dram_address=512, count_x=2),
        Load(memory=Memory.ACT, sram_address=8, dram_address=508, count_x=4),
        Load(memory=Memory.ACT, sram_address=0, dram_address=1020, count_x=9),
    )
    (dram,) = shadow.seen(2)
    assert (dram.space, dram.places.tolist()) == (None, [127, 128, 129, 130])
    assert (dram.writers == NOBODY).all()
    shadow.apply(1)
    (act,) = shadow.seen(1)
    assert (act.space, act.places.tolist(), act.writers.tolist()) == (Memory.ACT, [1, 2], [0, 0])
    shadow.apply(2)  # it begins: nothing has reached DRAM
    assert (shadow.seen(2)[0].writers == NOBODY).all()
    shadow.apply(3)
    assert shadow.seen(2)[0].writers.tolist() == [NOBODY, 1, 1, NOBODY]
    # Behind the end of DRAM nobody writes.
    assert shadow.seen(3)[0].places.tolist() == [255, 256]


HALO = replace(LAYOUT, halo=(1, 2, 1, 1))
FULL = WIDTH + 3


@pytest.mark.parametrize(("word", "block"), [(20, 1), (1, 1), (20, 4)])
@pytest.mark.parametrize("gap", [0, 2])
def test_rows_of_results_make_the_halo_beside_them_theirs(word: int, block: int, gap: int) -> None:
    written = Vector(
        source=Memory.ACC,
        destination=Memory.ACT,
        source_address=0,
        destination_address=word,
        extent=(1, WIDTH, 2, 1, 1),
        source_stride=(0, 1, WIDTH, 0, 0),
        destination_stride=(1, FULL + gap, 0, 0),
    )
    frame = Frame(0, word, FULL + gap, 5 * (FULL + gap), (block, 1, 2))
    expected = {
        (word + row * (FULL + gap) + column - 2) % TINY.act_depth: (block, row + 1, column)
        for row in range(2)
        for column in range(FULL)
    }
    assert known(loaded(written, layout=HALO, frame=frame)) == expected


def test_rows_without_room_for_a_halo_have_none() -> None:
    written = Vector(
        source=Memory.ACC,
        destination=Memory.ACT,
        source_address=0,
        destination_address=20,
        extent=(1, WIDTH, 2, 1, 1),
        source_stride=(0, 1, WIDTH, 0, 0),
        destination_stride=(1, WIDTH, 0, 0),
    )
    close = Frame(0, 20, WIDTH, 5 * WIDTH, (0, 1, 2))
    places = {20 + n: (0, n // WIDTH + 1, n % WIDTH + 2) for n in range(2 * WIDTH)}
    assert known(loaded(written, layout=HALO, frame=close)) == places
    assert known(loaded(written, layout=HALO)) == {}
    above = replace(HALO, halo=(1, 0, 1, 0))
    apart = replace(close, row_words=WIDTH, origin=(0, 1, 0))
    places = {20 + n: (0, n // WIDTH + 1, n % WIDTH) for n in range(2 * WIDTH)}
    assert known(loaded(written, layout=above, frame=apart)) == places


def test_an_instruction_may_write_parts_of_two_tensors_word_by_word() -> None:
    # Words 20, 24, 28 are of the first, and 22, 26, 30 of the second.
    written = Vector(
        source=Memory.ACC,
        destination=Memory.ACT,
        source_address=0,
        destination_address=20,
        extent=(1, 3, 2, 1, 1),
        source_stride=(0, 1, 3, 0, 0),
        destination_stride=(4, 2, 0, 0),
    )
    frames = Frame(0, 20, 20, 4, (0, 0, 0)), Frame(1, 22, 20, 4, (1, 0, 0))
    record = Record((LAYOUT, replace(LAYOUT, name="y")), {0: frames}, {}, ())
    shadow = Shadow((written,), TINY, 1024, record, Footprints((written,), TINY))
    shadow.apply(1)
    assert np.flatnonzero(shadow.tensor >= 0).tolist() == [20, 22, 24, 26, 28, 30]
    assert shadow.tensor[20:32:2].tolist() == [0, 1] * 3
    assert shadow.place[20:32:2, 0].tolist() == [0, 1, 1, 2, 2, 3]


IMAGE = replace(
    LAYOUT,
    blocks=1,
    halo=(1, 0, 1, 0),
    image=ImageLayout(3, 1, 15, 16, False, 3, None, 1, 1),
    shape=(1, 3, 5, 3),
)
"""Rows of 15 bytes, 16 apart; windows of four bytes, three apart, the first a byte before."""


def test_windows_of_an_image_are_known_by_their_first_bytes() -> None:
    windows = Load(
        memory=Memory.ACT,
        sram_address=5,
        dram_address=ADDRESS + 16 - 1,
        count_x=5,
        count_y=2,
        dram_stride_y=16,
        sram_stride_y=6,
        step=3,
        row_first=1,
        row_end=16,
    )
    places = {
        5 + 6 * row + window: (0, 1 + row + 1, 3 * window - 1)
        for row in range(2)
        for window in range(5)
    }
    assert known(loaded(windows, layout=IMAGE)) == places
    # The same by what the module remembers of the instruction; from the image's second row on.
    frame = Frame(0, 5, 6, 18, (0, 2, 0))
    assert known(loaded(windows, layout=IMAGE, frame=frame)) == places


def test_planes_of_an_image_lie_one_behind_the_other() -> None:
    """Four channels, of which each plane of three rows has two, in pixels of three bytes."""
    image = ImageLayout(6, 3, 15, 16, False, 3, None, 2, 1)
    layout = replace(LAYOUT, blocks=2, halo=(1, 0, 1, 0), image=image, shape=(1, 3, 5, 4), height=3)
    address = np.array([ADDRESS + (3 + 1) * 16 + 6])
    assert [int(each[0]) for each in layout.dram_place(address)] == [1, 2, 6]
    assert layout.dram_bytes == 2 * 3 * 16
    found = layout.elements(*layout.dram_place(address))
    assert found.known[0].tolist() == [True, True, False, True]
    assert found.row[0].tolist() == [1] * 4
    assert found.column[0].tolist() == [2, 2, 2, 3]
    assert found.channel[0, [0, 1, 3]].tolist() == [2, 3, 2]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("own", [False, True])
def test_each_byte_of_an_image_is_a_channel_of_a_pixel_or_none(own: bool, transposed: bool) -> None:
    # Two channels in pixels of three bytes; or windows of three pixels, eight bytes apart.
    image = (
        ImageLayout(8, 0, 40, 48, transposed, 2, OwnWindows(3, 2, 1, 8), 1, 1)
        if own
        else ImageLayout(6, 3, 15, 16, transposed, 3, None, 1, 1)
    )
    shape = (1, 5, 3, 2) if transposed else (1, 3, 5, 2)
    layout = replace(LAYOUT, blocks=1, halo=(1, 0, 1, 0), image=image, shape=shape, height=3)
    found = layout.elements(np.array([0]), np.array([2]), np.array([16 if own else 6]))
    assert layout.lanes == 4
    wanted = [(3, 0), (3, 1), (4, 0), (4, 1)] if own else [(2, 0), (2, 1), None, (3, 0)]
    for lane, each in enumerate(wanted):
        assert found.known[0, lane] == (each is not None)
        assert not found.halo[0, lane]
        if each:
            place = (found.column if not transposed else found.row)[0, lane], found.channel[0, lane]
            assert place == each
            assert (found.row if not transposed else found.column)[0, lane] == 1
    # The first window begins before the image.
    first = layout.elements(np.array([0]), np.array([1]), np.array([0 if own else -3]))
    assert first.halo[0].tolist() == (
        [True, True, False, False] if own else [True, True, True, False]
    )
    # A LOAD from a wrong address may take it for words of a block that it does not have.
    other = layout.elements(np.array([1]), np.array([2]), np.array([16 if own else 6]))
    assert not (other.known | other.halo).any()


def test_an_activation_has_the_bytes_from_its_first_to_its_last() -> None:
    end = ADDRESS + LAYOUT.dram_bytes
    assert LAYOUT.dram_bytes == 2 * HEIGHT * WIDTH * 4
    plain = shadowed()
    assert [plain.root_at(address) for address in (ADDRESS - 1, end)] == [None, None]
    assert plain.root_at(ADDRESS) == plain.root_at(end - 1) == (0, LAYOUT)
    image, end = shadowed(layout=IMAGE), ADDRESS + 16 * HEIGHT
    assert [image.root_at(address) for address in (ADDRESS - 2, end)] == [None, None]
    assert image.root_at(ADDRESS - 1) == image.root_at(end - 1) == (0, IMAGE)
    for other in ({"address": None}, {"root": "y"}, {"addend": True}):
        assert shadowed(layout=replace(LAYOUT, **other)).root_at(ADDRESS) is None


def test_words_between_blocks_are_no_parts_of_an_activation() -> None:
    spare = replace(LAYOUT, spare=2)
    words = ADDRESS + 4 * np.arange(2 * HEIGHT * WIDTH + 2)
    mine = shadowed(layout=spare).roots_at(words) == 0
    assert np.flatnonzero(~mine).tolist() == [HEIGHT * WIDTH, HEIGHT * WIDTH + 1]
    block, row, column = spare.dram_place(words[-1:])
    assert (block[0], row[0], column[0]) == (1, HEIGHT - 1, WIDTH - 1)
