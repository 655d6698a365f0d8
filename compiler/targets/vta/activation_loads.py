"""Activations that are on chip as a whole: how the model's input comes, and halos are filled."""

from collections.abc import Iterator
from typing import TypeVar

from dovetail.isa.config import HardwareConfig
from dovetail.isa.footprint import dram_word_bytes
from dovetail.isa.frozen import replace
from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory

from .image import image_reads, load_windows
from .layers.activation import Activation
from .long_moves import MOST
from .model import row_cycles
from .record import Frame

__all__ = ["halo_loads", "in_long_rows", "input_loads"]

Moved = TypeVar("Moved", Load, Store)

INPUT_CHUNKS = 8
"""Pieces in which the input is loaded, so that the first layer starts before all of it has come.
Each is so large that LOAD moves data for at least as long as it waits for the first of them.
"""

MOST_PADDING = 510
"""Words of padding in a row of one LOAD."""


def input_loads(
    source: Activation, place: int, address: int, config: HardwareConfig
) -> Iterator[tuple[Load, Frame | None]]:
    """LOADs of the model's input, row after row, with its halo; each with where the halo lies, if
    it brings nothing else.

    place: the input's first word in ACT.  address: in DRAM.
    """
    size = config.word_bytes(Memory.ACT)
    row = image_reads(source.image, config)[1] if source.image else source.width * size
    cycles, _ = row_cycles(row, config)
    fewest = -(-config.dram.latency_cycles // int(cycles))
    rows = max(-(-source.height // INPUT_CHUNKS), min(fewest, source.height))
    if source.image:
        yield from _image_loads(source, place, address, rows, config)
        return
    top, left, bottom, right = source.halo
    for first in range(0, source.height, rows):
        count = min(rows, source.height - first)
        above = top if first == 0 else 0
        below = bottom if first + count == source.height else 0
        load = Load(
            memory=Memory.ACT,
            sram_address=place + (first + top - above) * source.columns,
            dram_address=address + first * source.width * size,
            count_x=source.width,
            count_y=count,
            count_z=source.blocks,
            dram_stride_y=source.width * size,
            dram_stride_z=source.plane * size,
            sram_stride_y=source.columns,
            sram_stride_z=source.rows * source.columns,
            pad_x_before=left,
            pad_x_after=right,
            pad_y_before=above,
            pad_y_after=below,
            pad_value=source.fill or 0,
        )
        yield in_long_rows(load, config), None


def in_long_rows(moved: Moved, config: HardwareConfig) -> Moved:
    """``moved`` in fewer rows, where these lie behind each other in both memories.

    A row takes at least one burst, so fewer rows are faster.
    """
    size = dram_word_bytes(moved, config)
    x, y, z = moved.count_x, moved.count_y, moved.count_z
    if isinstance(moved, Load) and (moved.step or moved.columns * moved.rows != x * y):
        return moved
    if (moved.sram_stride_y, moved.dram_stride_y) == (x, x * size) and x * y <= MOST:
        x, y = x * y, 1
    if y == 1 and (moved.sram_stride_z, moved.dram_stride_z) == (x, x * size):
        x, z = (x * z, 1) if x * z <= MOST else (x, z)
    return replace(moved, count_x=x, count_y=y, count_z=z)


def _image_loads(
    source: Activation, place: int, address: int, rows: int, config: HardwareConfig
) -> Iterator[tuple[Load, Frame | None]]:
    """LOADs of the windows of an image, some rows at a time."""
    strides = (source.rows * source.columns, source.columns)
    for first in range(0, source.rows, rows):
        part = ((0, source.blocks), (first, min(rows, source.rows - first)))
        word = place + first * source.columns
        for load in load_windows(
            source, (*part, (0, source.columns)), strides, word, address, config.bus_bytes
        ):
            yield load, None if load.words else _halo_frame(source, place)


def halo_loads(output: Activation, place: int) -> Iterator[tuple[Load, Frame]]:
    """LOADs that fill the halo: before the first row of data, between rows, and after the last.

    If several layers make pixels of the tensor, the one that makes the first pixel fills its halo.
    """
    if output.fill is None or (output.grid and any(output.grid.start)):
        return
    height, width = output.full_size
    top, left, bottom, right = output.halo
    columns = output.columns
    base = place + output.first_block * output.rows * columns
    runs = (
        (0, top * columns + left, 1),
        (top * columns + left + width, left + right, height - 1),
        ((top + height) * columns - right, right + bottom * columns, 1),
    )
    for start, words, rows in runs:
        for begin in range(0, words if rows else 0, MOST_PADDING):
            count = min(MOST_PADDING, words - begin)
            load = Load(
                memory=Memory.ACT,
                sram_address=base + start + begin,
                count_x=0,
                count_y=rows,
                count_z=output.blocks,
                sram_stride_y=columns,
                sram_stride_z=output.rows * columns,
                pad_x_before=count // 2,
                pad_x_after=count - count // 2,
                pad_value=output.fill,
            )
            yield load, _halo_frame(output, place)


def _halo_frame(output: Activation, place: int) -> Frame:
    columns = output.columns
    return Frame(place, columns, output.rows * columns, halo_of=output.name)
