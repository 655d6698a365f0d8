"""Layouts of a module's tensors in memory, recorded for the debugger."""

from dataclasses import dataclass

from dovetail.isa.frozen import frozen

__all__ = ["GridLayout", "ImageLayout", "Memories", "OwnWindows", "TensorPlace"]


@frozen
class OwnWindows:
    """Windows of an image's rows that share no bytes in DRAM, as the host cuts them out.

    size: pixels of one.  stride: pixels from one to the next.  before: of the first, before the
    image.  step: bytes from one to the next.
    """

    size: int
    stride: int
    before: int
    step: int


@frozen
class ImageLayout:
    """Rows of an image's bytes, ``pitch`` apart; words are windows of them.

    Window ``x`` begins with byte ``x * step - lead`` of its row; the column of a word is its first
    byte.  transposed: rows are columns of the tensor.  pixel_bytes: from one pixel to the next.
    windows: those that are there, where it is not the pixels.  planes: images, one after
    another, each of as many of the channels.  plane_blocks: blocks of a window of one.
    """

    step: int
    lead: int
    row_bytes: int
    pitch: int
    transposed: bool
    pixel_bytes: int
    windows: OwnWindows | None
    planes: int
    plane_blocks: int


@frozen
class GridLayout:
    """Pixels of an image of ``height`` x ``width`` from ``start`` on, ``steps`` apart."""

    height: int
    width: int
    start: tuple[int, int]
    steps: tuple[int, int]


@dataclass(frozen=True)
class TensorPlace:
    """A tensor int8[1, H, W, C] or int8[1, C] of the model's graph, and its layout.

    root: the tensor it is part of, perhaps itself; its blocks are those of the root, from
    ``first_block`` on.  addend: another tensor takes its place.  halo: top, left, bottom, right;
    fill: its value.  places: lane of each channel, counted over blocks.  grid: of a part with some
    of the root's pixels, which.  address: of its root in DRAM, where it has no halo; None when it
    never is there.  spare: words there behind each block, which are not the tensor's.
    """

    name: str
    shape: tuple[int, ...]
    root: str
    addend: bool
    first_block: int
    blocks: int
    channels: int
    height: int
    width: int
    halo: tuple[int, int, int, int]
    fill: int | None
    places: tuple[int, ...] | None
    grid: GridLayout | None
    address: int | None
    spare: int
    image: ImageLayout | None


@frozen
class Memories:
    """Where the instructions of a program put things.

    frames: for each instruction that writes part of a tensor: instruction, number of the tensor,
    word, row_words, block_words, and the origin's block, row and column.  One that writes parts of
    several has as many, each for an equal share of its words, in the order in which it writes them.
    constants: for each LOAD of a part of a constant: instruction, name, place.
    weights: by layer, the shape of its tiles: output blocks, input blocks, rows, columns, output
    and input lanes; None for a layer without.
    """

    tensors: tuple[TensorPlace, ...]
    frames: tuple[tuple[int, int, int, int, int, int, int, int], ...]
    constants: tuple[tuple[int, str, tuple[int, ...]], ...]
    weights: tuple[tuple[int, ...] | None, ...]
