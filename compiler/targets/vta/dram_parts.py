"""LOADs and STOREs of a part of an activation in DRAM, which has no halo there."""

from collections.abc import Iterator, Sequence

from dovetail.isa.frozen import replace
from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory

from .image import Span, cut, load_windows
from .layers.activation import Activation

__all__ = ["load_parts", "store_part", "store_pixels"]


def load_parts(
    x: Activation,
    part: Sequence[Span],
    shape: tuple[int, int, int],
    sram: int,
    dram: int,
    bus_bytes: int,
    step: int = 1,
) -> Iterator[Load]:
    """LOADs of blocks, rows and columns ``part`` of ``x``, which has no halo in DRAM.

    shape: blocks, rows and columns of the buffer.  sram: the word of the buffer that gets the
    first.
    step: from one row of the part to the next; if it is more than 1, no row is in the halo.
    """
    blocks, rows, columns = part
    if x.image:
        strides = (shape[1] * shape[2], shape[2])
        yield from load_windows(x, (blocks, rows, columns), strides, sram, dram, bus_bytes)
        return
    top, left = x.halo[:2]
    above, height, below = cut(rows, top, x.height) if step == 1 else (0, rows[1], 0)
    before, width, after = cut(columns, left, x.width)
    first = (max(rows[0] - top, 0), max(columns[0] - left, 0))
    yield Load(
        memory=Memory.ACT,
        sram_address=sram,
        dram_address=dram + _bytes(x, blocks[0], *first) if width and height else 0,
        count_x=width,
        count_y=height,
        count_z=blocks[1],
        dram_stride_y=_bytes(x, 0, step, 0),
        dram_stride_z=_bytes(x, 1, 0, 0),
        sram_stride_y=shape[2],
        sram_stride_z=shape[1] * shape[2],
        pad_x_before=before,
        pad_x_after=after,
        pad_y_before=above,
        pad_y_after=below,
        pad_value=x.fill or 0,
    )


def store_part(
    x: Activation, part: Sequence[Span], shape: tuple[int, int, int], sram: int, dram: int
) -> Store:
    """The STORE of blocks, rows and columns ``part`` of ``x``, except its halo.

    Arguments are as of ``load_parts``.
    """
    blocks, rows, columns = part
    top, left = x.halo[:2]
    above, height, _ = cut(rows, top, x.height)
    before, width, _ = cut(columns, left, x.width)
    first = (max(rows[0] - top, 0), max(columns[0] - left, 0))
    return Store(
        dram_address=dram + _bytes(x, blocks[0], *first),
        sram_address=sram + above * shape[2] + before,
        count_x=width,
        count_y=height,
        count_z=blocks[1],
        dram_stride_y=_bytes(x, 0, 1, 0),
        dram_stride_z=_bytes(x, 1, 0, 0),
        sram_stride_y=shape[2],
        sram_stride_z=shape[1] * shape[2],
    )


def store_pixels(
    x: Activation, part: Sequence[Span], shape: tuple[int, int, int], sram: int, dram: int
) -> Iterator[Store]:
    """As ``store_part``, but only the pixels of ``x`` that are in its grid."""
    assert x.grid is not None
    grid = x.grid.downward(x.height)
    blocks, *spans = part
    rows, columns = (
        _taken(span, before, start, step, count)
        for span, before, start, step, count in zip(
            spans, x.halo, grid.start, grid.steps, (x.height, x.width), strict=False
        )
    )
    for block in range(blocks[1]):
        word = sram + block * shape[1] * shape[2]
        word += (rows[0] + x.halo[0] - spans[0][0]) * shape[2]
        store = Store(
            dram_address=dram + _bytes(x, blocks[0] + block, rows[0], columns[0]),
            sram_address=word + columns[0] + x.halo[1] - spans[1][0],
            count_x=columns[1],
            count_y=rows[1],
            count_z=1,
            dram_stride_y=_bytes(x, 0, grid.steps[0], 0),
            sram_stride_y=grid.steps[0] * shape[2],
        )
        if grid.steps[1] > 1:
            # Words apart in a row are rows of one word.
            store = replace(
                store,
                count_x=1,
                count_y=columns[1],
                count_z=rows[1],
                dram_stride_y=_bytes(x, 0, 0, grid.steps[1]),
                dram_stride_z=_bytes(x, 0, grid.steps[0], 0),
                sram_stride_y=grid.steps[1],
                sram_stride_z=grid.steps[0] * shape[2],
            )
        yield store


def _taken(span: Span, before: int, start: int, step: int, count: int) -> Span:
    """The rows of ``count`` that are in ``span``: the first one, and how many.

    They are ``step`` apart, from row ``start`` on.  ``span`` counts the ``before`` rows of the
    halo, the result does not.
    """
    low, high = span[0] - before, span[0] + span[1] - before
    first = max(0, -(-(low - start) // step))
    last = min(count, -(-(high - start) // step))
    return start + first * step, last - first


def _bytes(x: Activation, block: int, row: int, column: int) -> int:
    """Address of a word of ``x``, relative to its first one in DRAM, where it has no halo."""
    return (block * x.plane + row * x.full_size[1] + column) * x.lanes
