"""The first convolution's input as windows of the rows of an image.

An image has few channels, so a word for each pixel would leave most lanes empty.  Where only one
convolution reads it, a word is taken to be ``lanes`` bytes of an image row as it is in DRAM, from
the first pixel of a window on: pixel after pixel, channel after channel.  Then

    conv of a KH x KW kernel over [H, W, C]  =  conv of a KH x 1 kernel over [H, OW, KW * C]

with the strides and pads of the rows only.  Windows overlap; LOAD cuts them out of the rows.

LOAD takes windows that are a beat apart or more.  Where they are closer, it reads the rows several
times, every second or third window at a time.  The host may therefore put pixels further apart, or
each window separately, where that makes LOAD faster; the weights of the bytes in between are 0.
Where a word has room for a window of half of the channels only, the host may put each half of them
into a *plane* of its own, an image behind the other.
"""

from collections.abc import Iterator
from itertools import product

from dovetail.isa.config import WIDEST_BUS_BYTES, HardwareConfig
from dovetail.isa.frozen import frozen, replace
from dovetail.runtime.accelerator.layouts import OwnWindows
from dovetail.runtime.accelerator.part import Rows

from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.rules import Pair

__all__ = ["Image", "find_image"]

PITCH = WIDEST_BUS_BYTES
"""Rows begin at multiples of this many bytes."""

WIDEST_STEP = 255
"""Bytes from one window to the next, at most."""

PIECES, WAITED_BEATS = 8, 32
"""LOADs that an image takes for each time that its rows are read, and beats that each waits."""


@frozen
class Image:
    """Word (block k of a plane, row, column x) has the bytes ``x * step - lead + k * lanes`` and
    following of the row.

    rows: of a plane.  columns: windows in a row.  row_bytes: of its pixels; what is before and
    behind counts as padding.  window_bytes: of a window, for all its blocks.  halo: padding rows
    above and below.  transposed: columns of the model's image are rows here.
    channels: of a pixel.  pixel_bytes: from one pixel to the next.  windows: that the host cuts
    out, where DRAM has these in place of pixels.  planes: each has as many of the image's channels.
    """

    rows: int
    columns: int
    row_bytes: int
    window_bytes: int
    step: int
    lead: int
    halo: Pair
    transposed: bool
    channels: int
    pixel_bytes: int
    windows: OwnWindows | None = None
    planes: int = 1

    @property
    def plane_bytes(self) -> int:
        """Bytes from plane to plane in DRAM."""
        return self.rows * self.pitch

    def plane_blocks(self, lanes: int) -> int:
        """Blocks of a window of one plane."""
        return -(-self.window_bytes // lanes)

    def lanes_of(self, lanes: int) -> int:
        """Lanes of all blocks, up to the last with a byte of a window."""
        return (self.planes - 1) * self.plane_blocks(lanes) * lanes + self.window_bytes

    @property
    def pitch(self) -> int:
        """Bytes from row to row in DRAM: those of the pixels, to a multiple of ``PITCH``."""
        return -(-self.row_bytes // PITCH) * PITCH

    def layout(self, fill: int) -> Rows:
        """How the host lays the image; ``fill``: bytes that are none of its own."""
        count = self.columns if self.windows else self.row_bytes // self.pixel_bytes
        return Rows(
            self.rows,
            self.pitch,
            self.transposed,
            self.pixel_bytes,
            self.windows,
            count,
            fill,
            self.planes,
        )

    def margin(self, lanes: int) -> int:
        """Bytes before and behind the image that LOAD may read too."""
        end = (self.columns - 1) * self.step - self.lead + self.plane_blocks(lanes) * lanes
        most = max(self.lead, end - self.row_bytes, 0)
        return -(-most // PITCH) * PITCH


def find_image(
    conv: Conv2d,
    shape: tuple[int, ...],
    kernel: Pair,
    result: Pair,
    lanes: int,
    config: HardwareConfig | None = None,
) -> Image | None:
    """The windows with the fewest words for ``conv`` over an image of ``shape`` [1, H, W, C], and
    of these, where all fit in ACT, the ones that LOAD reads in the fewest cycles.

    Larger images come strip by strip while others are computed, so there LOAD seldom sets the pace.

    kernel: its height and width.  result: that of its result.  Rows are those of the image, or, if
    that takes fewer words, its columns, which the host then has to transpose.  None when pixels
    take as few words.  config: of the accelerator; without one, the image stays as it is.
    """
    bus = config.bus_bytes if config else 1
    ways = []
    for transposed, planes in product((False, True), (1, 2) if shape[3] % 2 == 0 else (1,)):
        kernels = kernel[::-1] if transposed else kernel
        plane = (*shape[:3], shape[3] // planes)
        forms = _forms(conv, plane, kernels, result[not transposed], transposed, bus)
        for number, form in enumerate(forms):
            image = replace(form, planes=planes)
            blocks = planes * image.plane_blocks(lanes)
            turns = -(-bus // image.step)
            beats = image.rows * -(-image.row_bytes // bus) + PIECES * WAITED_BEATS
            fits = config and blocks * image.rows * image.columns <= config.act_depth
            if image.step <= WIDEST_STEP and (fits or not number):
                ways.append((kernels[0] * blocks, transposed, blocks * turns * beats, image))
    words, _, _, best = min(ways, key=lambda way: way[:3], default=(0, False, 0, None))
    pixels = kernel[0] * kernel[1] * -(-shape[3] // lanes)
    return best if best is not None and words < pixels else None


def _forms(
    conv: Conv2d,
    shape: tuple[int, ...],
    kernel: Pair,
    columns: int,
    transposed: bool,
    bus_bytes: int,
) -> Iterator[Image]:
    """The image as it is, with pixels further apart, and as windows that share no bytes.

    kernel: rows and columns of a window, and ``columns``: windows of a row, as rows are in DRAM.
    """
    _, height, width, channels = shape
    top, left, bottom, right = conv.pads
    size, rows = (height, width) if transposed else (width, height)
    stride, before = (conv.strides[0], top) if transposed else (conv.strides[1], left)
    halo = (left, right) if transposed else (top, bottom)
    beats = (-(-bus_bytes // turns) for turns in range(1, bus_bytes + 1))
    for pixel in dict.fromkeys((channels, *(max(channels, -(-beat // stride)) for beat in beats))):
        yield Image(
            rows=rows,
            columns=columns,
            row_bytes=size * pixel,
            window_bytes=kernel[1] * pixel,
            step=stride * pixel,
            lead=before * pixel,
            halo=halo,
            transposed=transposed,
            channels=channels,
            pixel_bytes=pixel,
        )
    window = kernel[1] * channels
    own = OwnWindows(kernel[1], stride, before, max(window, bus_bytes))
    yield Image(
        rows=rows,
        columns=columns,
        row_bytes=columns * own.step,
        window_bytes=window,
        step=own.step,
        lead=0,
        halo=halo,
        transposed=transposed,
        channels=channels,
        pixel_bytes=channels,
        windows=own,
    )
