"""Convolutions that take their image as windows of rows, and the number of words."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.targets.vta.layers.image import find_image
from dovetail.isa.configs import find_config

ZYNQ7020 = find_config("zynq7020")

CASES = [
    # kernel, strides, pads, image, lanes: kernel rows and blocks of a window, transposed
    ((7, 7), (2, 2), (3, 3, 3, 3), (224, 224, 3), 16, (7, 2), False),
    ((3, 3), (2, 2), (0, 0, 1, 1), (96, 96, 3), 16, (3, 1), False),
    ((3, 3), (1, 1), (1, 1, 1, 1), (32, 32, 3), 16, (3, 1), False),
    ((10, 4), (2, 2), (4, 1, 5, 1), (49, 10, 1), 16, (4, 1), True),
    ((3, 3), (1, 1), (1, 1, 1, 1), (32, 32, 3), 4, None, False),
    ((5, 5), (1, 1), (1, 1, 1, 1), (32, 32, 3), 4, (5, 4), False),
    ((1, 1), (1, 1), (0, 0, 0, 0), (32, 32, 3), 16, None, False),
    ((3, 3), (1, 1), (1, 1, 1, 1), (32, 32, 16), 16, None, False),
    ((3, 3), (90, 90), (0, 0, 0, 0), (200, 200, 3), 16, None, False),
]


@pytest.mark.parametrize(("kernel", "strides", "pads", "size", "lanes", "words", "turned"), CASES)
def test_windows_are_taken_where_they_need_fewer_words(
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    size: tuple[int, int, int],
    lanes: int,
    words: tuple[int, int] | None,
    turned: bool,
) -> None:
    conv = Conv2d(strides, pads, 1, 0)
    result = tuple(
        (size[axis] + pads[axis] + pads[axis + 2] - kernel[axis]) // strides[axis] + 1
        for axis in (0, 1)
    )
    image = find_image(conv, (1, *size), kernel, (result[0], result[1]), lanes)
    if words is None:
        assert image is None
        return
    assert image is not None
    assert (kernel[1 if turned else 0], -(-image.window_bytes // lanes)) == words
    assert image.transposed is turned
    assert image.pitch % 16 == 0
    assert image.pitch == image.row_bytes or image.row_bytes % 16, "rows of whole beats stay"


@pytest.mark.parametrize(
    ("kernel", "strides", "size", "bus", "form"),
    [
        # bytes of a pixel, of a step, and whether windows share none
        ((3, 3), (2, 2), (96, 96, 3), 4, (3, 6, False)),
        ((3, 3), (2, 2), (96, 96, 3), 8, (4, 8, False)),
        ((5, 5), (2, 2), (64, 64, 1), 8, (1, 8, True)),
        ((3, 3), (2, 2), (224, 224, 3), 8, (3, 6, False)),
        ((11, 11), (4, 4), (64, 64, 3), 8, (3, 12, False)),
        ((3, 3), (1, 1), (60, 60, 3), 8, (4, 4, False)),
        ((3, 3), (1, 1), (32, 32, 3), 8, (3, 9, True)),
        ((10, 4), (2, 2), (49, 10, 1), 8, (1, 10, True)),
        ((3, 3), (1, 1), (28, 28, 1), 8, (1, 8, True)),
    ],
)
def test_pixels_lie_as_they_are_read_soonest(
    kernel: tuple[int, int],
    strides: tuple[int, int],
    size: tuple[int, int, int],
    bus: int,
    form: tuple[int, int, bool],
) -> None:
    conv = Conv2d(strides, (0, 0, 0, 0), 1, 0)
    result = tuple((size[axis] - kernel[axis]) // strides[axis] + 1 for axis in (0, 1))
    config = replace(ZYNQ7020, bus_bytes=bus)
    image = find_image(conv, (1, *size), kernel, (result[0], result[1]), 16, config)
    assert image is not None
    assert (image.pixel_bytes, image.step, image.windows is not None) == form


def test_channels_of_wide_windows_lie_in_two_planes() -> None:
    """A window has 18 bytes, or half of the channels 9, of 12 with what is between pixels."""
    conv = Conv2d((2, 2), (0, 0, 0, 0), 1, 0)
    image = find_image(conv, (1, 51, 96, 6), (3, 3), (25, 47), 16, ZYNQ7020)
    assert image is not None
    assert (image.planes, image.channels, image.pixel_bytes, image.step) == (2, 3, 4, 8)
    assert (image.plane_blocks(16), image.lanes_of(16)) == (1, 16 + 12)
    x = np.arange(51 * 96 * 6).astype(np.int8).reshape(1, 51, 96, 6)
    layout = image.layout(-5)
    packed = layout.pack(x).reshape(2, 51, 96, 4)
    assert layout.size == packed.size
    assert (packed[..., :3] == x[0].reshape(51, 96, 2, 3).transpose(2, 0, 1, 3)).all()
    assert (packed[..., 3] == -5).all()


def test_a_row_may_be_read_before_and_behind_its_pixels() -> None:
    image = find_image(Conv2d((2, 2), (3, 3, 3, 3), 1, 0), (1, 9, 9, 3), (7, 7), (5, 5), 16)
    assert image is not None
    assert (image.lead, image.step, image.row_bytes) == (9, 6, 27)
    last = (5 - 1) * 6 - 9 + 2 * 16
    assert image.margin(16) >= max(9, last - 27)
    assert image.margin(16) % 16 == 0
