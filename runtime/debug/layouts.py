"""The tensor element that a word of ACT or DRAM holds, as the module remembers it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ..accelerator.layouts import TensorPlace
from ..accelerator.part import AcceleratorPart
from ..errors import ModuleError

__all__ = ["Elements", "Frame", "Record", "TensorLayout", "read_record"]

Ints = NDArray[np.int64]


@frozen
class Elements:
    """The element of each lane of some words: int64[n, lanes] each.

    known: whether it is one of the tensor; where not, ``halo`` says whether it is padding.
    """

    row: Ints
    column: Ints
    channel: Ints
    known: NDArray[np.bool_]
    halo: NDArray[np.bool_]


@dataclass(frozen=True)
class TensorLayout(TensorPlace):
    """A tensor's place, and which of its elements each word holds; ``lanes`` of a block."""

    lanes: int

    @property
    def nhwc(self) -> tuple[int, int, int]:
        """Height, width and channels of the tensor itself."""
        return (1, 1, self.shape[-1]) if len(self.shape) < 4 else self.shape[1:]  # type: ignore

    @property
    def dram_bytes(self) -> int:
        """Bytes of the root in DRAM, from its first to its last."""
        if self.image:
            return self.image.planes * self.height * self.image.pitch
        return (self.blocks * self.plane - self.spare) * self.lanes

    @property
    def plane(self) -> int:
        """Words in DRAM from one block of the root to the next."""
        height, width = self.full_size
        return height * width + self.spare

    def holds(self, address: Ints) -> NDArray[np.bool_]:
        """True if DRAM bytes are the root's; of an image, some before it too.  int64[n]."""
        assert self.address is not None
        offset = address - self.address
        found = (offset >= -(self.image.lead if self.image else 0)) & (offset < self.dram_bytes)
        if self.spare:
            found &= offset // self.lanes % self.plane < self.plane - self.spare
        return found

    @property
    def full_size(self) -> tuple[int, int]:
        """Height and width of the root."""
        return (self.grid.height, self.grid.width) if self.grid else (self.height, self.width)

    @cached_property
    def channel_of(self) -> Ints:
        """The channel of each lane of the root's blocks; -1 for none: int64[blocks * lanes]."""
        found = np.full(self.blocks * self.lanes, -1, np.int64)
        lanes = np.array(self.places if self.places else range(self.channels), np.int64)
        found[lanes + self.first_block * self.lanes] = np.arange(self.channels)
        return found

    def elements(self, block: Ints, row: Ints, column: Ints) -> Elements:
        """Elements that words (block, row, column) hold, the halo included; int64[n] each."""
        lane = np.arange(self.lanes)
        if self.image:
            return self._pixels(block, row, column, lane)
        y = np.broadcast_to((row - self.halo[0])[:, None], (len(row), self.lanes))
        x = np.broadcast_to((column - self.halo[1])[:, None], (len(row), self.lanes))
        height, width = self.full_size
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        there = (block >= 0) & (block < self.blocks)
        channel = self.channel_of[np.where(there, block, 0)[:, None] * self.lanes + lane]
        near = (y >= -self.halo[0]) & (y < height + self.halo[2])
        near &= (x >= -self.halo[1]) & (x < width + self.halo[3])
        halo = near & ~inside & there[:, None]
        if self.grid:
            (top, left), (down, across) = self.grid.start, self.grid.steps
            inside &= ((y - top) % down == 0) & ((x - left) % across == 0)
            y, x = (y - top) // down, (x - left) // across
            inside &= (y >= 0) & (y < self.height) & (x >= 0) & (x < self.width)
        return Elements(y, x, channel, inside & (channel >= 0) & there[:, None], halo)

    def _pixels(self, block: Ints, row: Ints, column: Ints, lane: Ints) -> Elements:
        image = self.image
        assert image is not None
        height, width, every = self.nhwc
        channels = every // image.planes
        byte = column[:, None] + lane
        y = np.broadcast_to((row - self.halo[0])[:, None], byte.shape)
        inside = (byte >= 0) & (byte < image.row_bytes) & (y >= 0) & (y < self.height)
        if image.windows:
            window, byte = np.divmod(byte, image.windows.step)
            x = window * image.windows.stride - image.windows.before + byte // image.pixel_bytes
            empty = byte >= image.windows.size * image.pixel_bytes
            within = (x >= 0) & (x < (height if image.transposed else width))
        else:
            x, empty, within = byte // image.pixel_bytes, np.zeros_like(inside), inside
        channel = byte % image.pixel_bytes
        empty = inside & (empty | (channel >= channels))
        there = ((block >= 0) & (block < self.blocks))[:, None]
        known = inside & within & ~empty & there
        if image.transposed:
            y, x = x, y
        channel = channel + block[:, None] // image.plane_blocks * channels
        return Elements(y, x, np.where(empty, -1, channel), known, ~known & ~empty & there)

    def dram_place(self, address: Ints) -> tuple[Ints, Ints, Ints]:
        """Block, row and column, the halo included, of the words at DRAM bytes ``address``."""
        assert self.address is not None
        if self.image:
            row, column = np.divmod(address - self.address, self.image.pitch)
            plane, row = np.divmod(row, self.height)
            return plane * self.image.plane_blocks, row + self.halo[0], column
        block, rest = np.divmod((address - self.address) // self.lanes, self.plane)
        row, column = np.divmod(rest, self.full_size[1])
        return block, row + self.halo[0], column + self.halo[1]


@frozen
class Frame:
    """Element ``origin`` (block, row, column; halo included) of ``tensor`` is at ``word``.

    Rows are ``row_words`` apart, blocks ``block_words``.
    """

    tensor: int
    word: int
    row_words: int
    block_words: int
    origin: tuple[int, int, int]

    def place(self, words: Ints) -> tuple[Ints, Ints, Ints]:
        """Block, row and column of what should be in ``words``."""
        block, rest = np.divmod(words - self.word, self.block_words)
        row, column = np.divmod(rest, self.row_words)
        return block + self.origin[0], row + self.origin[1], column + self.origin[2]


@frozen
class Record:
    """A module's memory: its tensors, and by instruction, the part of them that it writes, or the
    constant that it loads: name and place.

    frames: one for each equal share of the words of an instruction, in the order of its writes.
    weights: by layer, the shape of its tiles: output blocks, input blocks, rows, columns, output
    and input lanes; None for a layer without.
    """

    tensors: tuple[TensorLayout, ...]
    frames: Mapping[int, tuple[Frame, ...]]
    constants: Mapping[int, tuple[str, tuple[int, ...]]]
    weights: tuple[tuple[int, ...] | None, ...]

    def number(self, name: str) -> int | None:
        """The place of the tensor ``name`` among ``tensors``."""
        return next((n for n, each in enumerate(self.tensors) if each.name == name), None)


EMPTY = Record((), {}, {}, ())


def read_record(part: AcceleratorPart) -> Record:
    """The record of ``part``; empty, if nothing was recorded.

    Raises ModuleError for tensors and instructions that do not exist.
    """
    found, lanes = part.memories, part.configuration.block
    if found is None:
        return EMPTY
    instructions = (*(row[0] for row in found.frames), *(row[0] for row in found.constants))
    if (
        not all(0 <= number < part.instruction_count for number in instructions)
        or not all(0 <= row[1] < len(found.tensors) for row in found.frames)
        or len(found.weights) != len(part.layers)
    ):
        raise ModuleError(
            "what the module remembers of its tensors does not fit its program; compile it again"
        )
    frames: dict[int, tuple[Frame, ...]] = {}
    for index, number, word, rows, blocks, *origin in found.frames:
        block, row, column = origin
        frame = Frame(number, word, rows, blocks, (block, row, column))
        frames[index] = (*frames.get(index, ()), frame)
    names = [field.name for field in fields(TensorPlace)]
    return Record(
        tuple(
            TensorLayout(**{name: getattr(each, name) for name in names}, lanes=lanes)
            for each in found.tensors
        ),
        frames,
        {index: (name, place) for index, name, place in found.constants},
        found.weights,
    )
