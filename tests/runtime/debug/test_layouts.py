"""Elements of a tensor that the lanes of a word hold."""

from dataclasses import replace

import numpy as np

from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import GraphBuilder
from dovetail.compiler.graph.operators.integer.windows import MaxPool2d
from dovetail.compiler.graph.operators.movement import Concatenate
from dovetail.compiler.graph.types import TensorType
from dovetail.runtime.accelerator.layouts import GridLayout, ImageLayout, OwnWindows
from dovetail.runtime.debug.layouts import Frame, TensorLayout
from dovetail.runtime.debug.session import Session
from dovetail.runtime.module import Module
from tests.compiler.targets.vta.test_parts import compiled

RNG = np.random.default_rng
PLAIN = TensorLayout(
    *("x", (1, 2, 3, 5), "x", False, 0, 2, 5, 2, 3, (0, 0, 0, 0), None),
    *(None, None, 100, 0, None, 4),
)
"""2x3 pixels of five channels, in two blocks of four lanes."""


def held(layout: TensorLayout, *place: int) -> list[object]:
    """Lane by lane of the word at (block, row, column): the element, "halo", or None."""
    found = layout.elements(*(np.array([each]) for each in place))
    rows = zip(found.row[0], found.column[0], found.channel[0], strict=True)
    return [
        tuple(map(int, each)) if known else "halo" if halo else None
        for each, known, halo in zip(rows, found.known[0], found.halo[0], strict=True)
    ]


def pixel(row: int, column: int, *channels: int) -> list[object]:
    return [(row, column, each) for each in channels]


def test_channels_lie_in_blocks_of_lanes() -> None:
    assert held(PLAIN, 0, 1, 2) == pixel(1, 2, 0, 1, 2, 3)
    assert held(PLAIN, 1, 0, 0) == [*pixel(0, 0, 4), None, None, None]
    for outside in ((0, 2, 0), (0, 0, 3), (0, -1, 0), (0, 0, -1), (2, 0, 0), (-1, 0, 0)):
        assert held(PLAIN, *outside) == [None] * 4
    second = replace(PLAIN, first_block=1, channels=4)
    assert held(second, 0, 0, 0) == [None] * 4
    assert held(second, 1, 0, 0) == pixel(0, 0, 0, 1, 2, 3)
    row = replace(PLAIN, shape=(1, 5))
    assert (PLAIN.nhwc, row.nhwc) == ((2, 3, 5), (1, 1, 5))
    spread = replace(PLAIN, places=(0, 1, 4, 5, 6))
    assert held(spread, 0, 0, 0) == [*pixel(0, 0, 0, 1), None, None]
    assert held(spread, 1, 0, 0) == [*pixel(0, 0, 2, 3, 4), None]


def test_a_halo_is_around_the_pixels() -> None:
    framed = replace(PLAIN, halo=(1, 2, 3, 4))
    assert held(framed, 0, 1, 2) == pixel(0, 0, 0, 1, 2, 3)
    assert held(framed, 0, 2, 4) == pixel(1, 2, 0, 1, 2, 3)
    for within in ((0, 0, 0), (0, 0, 2), (0, 1, 1), (1, 5, 8), (0, 3, 2), (0, 1, 5)):
        assert held(framed, *within) == ["halo"] * 4
    for outside in ((0, -1, 0), (0, 0, -1), (0, 6, 0), (0, 0, 9), (2, 0, 0)):
        assert held(framed, *outside) == [None] * 4


def test_a_part_may_have_some_of_the_pixels() -> None:
    grid = replace(PLAIN, grid=GridLayout(5, 6, (1, 0), (3, 2)))
    assert (grid.full_size, grid.plane, grid.dram_bytes) == ((5, 6), 30, 240)
    assert held(grid, 0, 1, 0) == pixel(0, 0, 0, 1, 2, 3)
    assert held(grid, 0, 4, 4) == pixel(1, 2, 0, 1, 2, 3)
    for other in ((0, 0, 0), (0, 2, 0), (0, 1, 1), (0, 4, 3)):
        assert held(grid, *other) == [None] * 4
    assert held(replace(grid, height=1), 0, 4, 4) == [None] * 4
    assert held(replace(grid, width=2), 0, 4, 4) == [None] * 4
    late = replace(grid, grid=GridLayout(5, 6, (4, 2), (3, 2)))
    assert held(late, 0, 1, 2) == held(late, 0, 4, 0) == [None] * 4


IMAGE = TensorLayout(
    *("x", (1, 2, 3, 3), "x", False, 0, 1, 3, 2, 3, (1, 0, 0, 0), None),
    *(None, None, 100, 0, ImageLayout(3, 1, 9, 12, False, 3, None, 1, 1), 4),
)
"""Rows of nine bytes, twelve apart."""


def test_bytes_of_an_image_are_its_pixels() -> None:
    assert held(IMAGE, 0, 1, 0) == [*pixel(0, 0, 0, 1, 2), (0, 1, 0)]
    assert held(IMAGE, 0, 2, 7) == [(1, 2, 1), (1, 2, 2), "halo", "halo"]
    assert held(IMAGE, 0, 1, -1) == ["halo", *pixel(0, 0, 0, 1, 2)]
    assert held(IMAGE, 0, 0, 0) == held(IMAGE, 0, 3, 0) == ["halo"] * 4
    image = IMAGE.image
    assert image is not None
    four = replace(IMAGE, image=replace(image, pixel_bytes=4, row_bytes=12))
    assert held(four, 0, 1, 4) == [*pixel(0, 1, 0, 1, 2), None]
    turned = replace(IMAGE, image=replace(image, transposed=True))
    assert held(turned, 0, 2, 0) == [*((0, 1, n) for n in range(3)), (1, 1, 0)]
    two = replace(image, planes=2, plane_blocks=2)
    planes = replace(IMAGE, shape=(1, 2, 3, 6), blocks=4, image=two)
    assert held(planes, 4, 1, 0) == [None] * 4
    assert held(planes, 1, 1, 0) == held(IMAGE, 0, 1, 0)
    assert held(planes, 2, 1, 3) == [*pixel(0, 1, 3, 4, 5), (0, 2, 3)]
    assert (IMAGE.dram_bytes, planes.dram_bytes) == (24, 48)
    own = OwnWindows(2, 1, 1, 8)
    windows = replace(IMAGE, image=replace(image, windows=own, row_bytes=24))
    assert held(windows, 0, 1, 0) == ["halo", "halo", "halo", (0, 0, 0)]
    assert held(windows, 0, 1, 4) == [*pixel(0, 0, 1, 2), None, None]
    assert held(windows, 0, 1, 16) == [*pixel(0, 1, 0, 1, 2), (0, 2, 0)]
    wide = replace(IMAGE, image=replace(image, windows=own, row_bytes=40))
    assert held(wide, 0, 1, 24) == [*pixel(0, 2, 0, 1, 2), "halo"]


def places(layout: TensorLayout, *addresses: int) -> list[tuple[int, ...]]:
    found = layout.dram_place(np.array(addresses))
    return [tuple(map(int, each)) for each in zip(*found, strict=True)]


def test_words_of_dram_have_places() -> None:
    at = 100
    assert places(PLAIN, at, at + 4, at + 12, at + 24) == [
        *((0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)),
    ]
    framed = replace(PLAIN, halo=(1, 2, 0, 0), spare=2)
    assert places(framed, at, at + 24, at + 32) == [(0, 1, 2), (0, 3, 2), (1, 1, 2)]
    assert places(IMAGE, at, at + 5, at + 12) == [(0, 1, 0), (0, 1, 5), (0, 2, 0)]
    image = IMAGE.image
    assert image is not None
    planes = replace(IMAGE, image=replace(image, planes=2, plane_blocks=2))
    assert places(planes, at + 24, at + 37) == [(2, 1, 0), (2, 2, 1)]


def test_bytes_of_dram_belong_to_a_tensor() -> None:
    def within(layout: TensorLayout, *offsets: int) -> list[bool]:
        return layout.holds(100 + np.array(offsets)).tolist()

    assert within(PLAIN, -1, 0, 47, 48) == [False, True, True, False]
    spare = replace(PLAIN, spare=1)
    assert spare.dram_bytes == 52
    assert within(spare, 23, 24, 27, 28, 51, 52) == [True, False, False, True, True, False]
    assert within(IMAGE, -2, -1, 23, 24) == [False, True, True, False]


def test_a_frame_counts_words_from_its_origin() -> None:
    frame = Frame(0, 40, 6, 24, (1, 2, 3))
    found = frame.place(np.array([40, 41, 46, 64, 64 + 6 + 5]))
    assert np.transpose(found).tolist() == [
        *([1, 2, 3], [1, 2, 4], [1, 3, 3], [2, 2, 3], [2, 3, 8]),
    ]


def test_parts_of_a_concatenation_are_where_the_record_says() -> None:
    builder, pool, rng = GraphBuilder(), MaxPool2d((2, 2), (1, 1), (0, 0, 0, 0)), RNG(3)
    names, given = [], {}
    for x, y, channels in (("x0", "y0", 3), ("x1", "y1", 6)):
        kind = TensorType((1, 3, 3, channels), "int8")
        names.append(builder.node(pool, (builder.input(x, kind),), y, y))
        given[x] = rng.integers(-128, 128, kind.shape, np.int8)
    joined = builder.node(Concatenate(3), tuple(names), "joined", "join")
    graph = builder.build((builder.node(pool, (joined,), "z", "last"),))
    session = Session(Module.of_part(compiled(graph, "tiny")), given)
    session.run_to_layer("last")
    truth = interpret(graph, given)
    for name in (joined, *names):
        assert np.array_equal(session.tensor(name).values, truth[name][0])
