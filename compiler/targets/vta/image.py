"""Loading parts of an image as windows of its rows."""

from collections.abc import Iterator

from dovetail.isa.config import HardwareConfig
from dovetail.isa.instructions import Load
from dovetail.isa.memories import Memory

from .layers.activation import Activation
from .layers.image import Image

__all__ = ["Span", "cut", "image_reads", "load_windows"]

Span = tuple[int, int]
"""First index, and how many."""


def cut(span: Span, before: int, size: int) -> tuple[int, int, int]:
    """How much of ``span`` is in the halo before, in the data, in the halo after."""
    start, count = span
    padding = min(max(before - start, 0), count)
    data = max(0, min(start + count - before, size) - max(start - before, 0))
    return padding, data, count - padding - data


def image_reads(image: Image, config: HardwareConfig) -> tuple[int, int]:
    """LOADs for a block of windows of the same rows, and bytes of a row that each reads."""
    turns, word = -(-config.bus_bytes // image.step), config.word_bytes(Memory.ACT)
    return turns, min(image.row_bytes, image.columns * image.step) + word


def load_windows(
    x: Activation,
    part: tuple[Span, Span, Span],
    strides: tuple[int, int],
    sram: int,
    dram: int,
    bus_bytes: int,
) -> Iterator[Load]:
    """Fetch blocks, rows (halo included) and columns ``part`` of the image ``x`` to word ``sram``.

    strides: words from block to block and from row to row.  dram: of the image's first byte.  Where
    windows are less than a beat apart, every second, third, ... one is loaded at a time.
    """
    image = x.image
    assert image is not None
    (first_block, blocks), rows, (first_column, columns) = part
    top = x.halo[0]
    above, height, below = cut(rows, top, x.height)
    row = dram + max(rows[0] - top, 0) * image.pitch if height else dram
    turns = -(-bus_bytes // image.step)
    for block in range(blocks):
        for turn in range(min(turns, columns)):
            start = (first_column + turn) * image.step - image.lead
            start += (first_block + block) * x.lanes
            yield Load(
                memory=Memory.ACT,
                sram_address=sram + block * strides[0] + turn,
                dram_address=row + start,
                count_x=-(-(columns - turn) // turns),
                count_y=height,
                dram_stride_y=image.pitch,
                sram_stride_y=strides[1],
                pad_y_before=above,
                pad_y_after=below,
                pad_value=x.fill or 0,
                step=turns * image.step,
                gap=turns - 1,
                row_first=max(0, -start),
                row_end=max(0, image.row_bytes - start),
            )
