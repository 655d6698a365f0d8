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
    """Lengths of ``span`` in the halo before, in the data, and in the halo after."""
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
    turns, of_plane = -(-bus_bytes // image.step), image.plane_blocks(x.lanes)
    # Planes of one block each come together.
    together = blocks if of_plane == 1 else 1
    for block in range(0, blocks, together):
        for turn in range(min(turns, columns)):
            plane, rest = divmod(first_block + block, of_plane)
            start = (first_column + turn) * image.step - image.lead + rest * x.lanes
            yield Load(
                memory=Memory.ACT,
                sram_address=sram + block * strides[0] + turn,
                dram_address=row + plane * image.plane_bytes + start,
                count_x=-(-(columns - turn) // turns),
                count_y=height,
                count_z=together,
                dram_stride_y=image.pitch,
                dram_stride_z=image.plane_bytes if together > 1 else 0,
                sram_stride_y=strides[1],
                sram_stride_z=strides[0] if together > 1 else 0,
                pad_y_before=above,
                pad_y_after=below,
                pad_value=x.fill or 0,
                step=turns * image.step,
                gap=turns - 1,
                row_first=max(0, -start),
                row_end=max(0, image.row_bytes - start),
            )
