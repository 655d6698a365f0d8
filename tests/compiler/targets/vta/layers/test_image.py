"""Which convolutions take their image as windows of rows, and how many words they are."""

import pytest

from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.targets.vta.layers.image import find_image

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


def test_a_row_may_be_read_before_and_behind_its_pixels() -> None:
    image = find_image(Conv2d((2, 2), (3, 3, 3, 3), 1, 0), (1, 9, 9, 3), (7, 7), (5, 5), 16)
    assert image is not None
    assert (image.lead, image.step, image.row_bytes) == (9, 6, 27)
    last = (5 - 1) * 6 - 9 + 2 * 16
    assert image.margin(16) >= max(9, last - 27)
    assert image.margin(16) % 16 == 0
