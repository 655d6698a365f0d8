"""The first convolution's input as windows of the rows of an image.

An image has few channels, so a word for each pixel would leave most lanes empty.  Where only one
convolution reads it, a word is taken to be ``lanes`` bytes of an image row as it lies in DRAM, from
the first pixel of a window on: pixel after pixel, channel after channel.  Then

    conv of a KH x KW kernel over [H, W, C]  =  conv of a KH x 1 kernel over [H, OW, KW * C]

with the strides and pads of the rows only.  Windows overlap; LOAD cuts them out of the rows.
"""

from dataclasses import dataclass

from dovetail.isa.config import WIDEST_BUS_BYTES

from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.rules import Pair

__all__ = ["Image", "find_image"]

PITCH = WIDEST_BUS_BYTES
"""Rows begin at multiples of this many bytes."""

WIDEST_STEP = 255
"""Bytes from one window to the next, at most."""


@dataclass(frozen=True, slots=True)
class Image:
    """Word (block k, row, column x) has the bytes ``x * step - lead + k * lanes`` and following.

    rows: of the image.  columns: windows in a row.  row_bytes: of its pixels; what lies before and
    behind counts as padding.  window_bytes: of a window, for all its blocks.  halo: padding rows
    above and below.  transposed: columns of the model's image are rows here.
    """

    rows: int
    columns: int
    row_bytes: int
    window_bytes: int
    step: int
    lead: int
    halo: Pair
    transposed: bool

    @property
    def pitch(self) -> int:
        """Bytes from row to row in DRAM: those of the pixels, to a multiple of ``PITCH``."""
        return -(-self.row_bytes // PITCH) * PITCH

    def margin(self, lanes: int) -> int:
        """Bytes before and behind the image that LOAD may read too."""
        blocks = -(-self.window_bytes // lanes)
        end = (self.columns - 1) * self.step - self.lead + blocks * lanes
        most = max(self.lead, end - self.row_bytes, 0)
        return -(-most // PITCH) * PITCH


def find_image(
    conv: Conv2d, shape: tuple[int, ...], kernel: Pair, result: Pair, lanes: int
) -> Image | None:
    """The windows with the fewest words for ``conv`` over an image of ``shape`` [1, H, W, C].

    kernel: its height and width.  result: that of its result.  Rows are those of the image, or, if
    that takes fewer words, its columns, which the host then has to transpose.  None when pixels
    take as few words.
    """
    _, height, width, channels = shape
    (top, left, bottom, right), (stride_y, stride_x) = conv.pads, conv.strides
    ways = []
    for transposed in (False, True):
        size, kernels = (height, kernel[::-1]) if transposed else (width, kernel)
        step = (stride_y if transposed else stride_x) * channels
        if step > WIDEST_STEP:
            continue
        image = Image(
            rows=width if transposed else height,
            columns=result[0] if transposed else result[1],
            row_bytes=size * channels,
            window_bytes=kernels[1] * channels,
            step=step,
            lead=(top if transposed else left) * channels,
            halo=(left, right) if transposed else (top, bottom),
            transposed=transposed,
        )
        ways.append((kernels[0] * -(-image.window_bytes // lanes), transposed, image))
    words, _, best = min(ways, key=lambda way: way[:2], default=(0, False, None))
    pixels = kernel[0] * kernel[1] * -(-channels // lanes)
    return best if best is not None and words < pixels else None
