"""Activations in the accelerator's blocked layout.

An activation of C channels is int8[C / lanes, top + H + bottom, left + W + right, lanes]: channels
in blocks, with the halo its readers need.  Channels beyond C hold anything; their weights are 0.
"""

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen, replace

from ....dtypes import DType
from ....graph.operators.integer.rules import Pair
from ....loops.affine import linear
from ....loops.expressions import Buffer, Expr, Load, Scope
from .image import Image

__all__ = ["Activation", "Grid"]


@frozen
class Grid:
    """The pixels of a part of an image: those of the whole from ``start`` on, ``steps`` apart.

    height, width: of the whole.  Rows of a part that is upside down are a negative step apart.
    """

    height: int
    width: int
    start: Pair
    steps: Pair

    def downward(self, rows: int) -> "Grid":
        """The same pixels of ``rows`` rows, from the uppermost on."""
        (top, left), (down, across) = self.start, self.steps
        if down > 0:
            return self
        return replace(self, start=(top + (rows - 1) * down, left), steps=(-down, across))


@frozen
class Activation:
    """An on-chip tensor: ``channels`` in blocks of ``lanes``, and its halo.

    halo: top, left, bottom, right.  fill: what the halo holds; None when nobody reads it.  image:
    when its words are windows of an image's rows; then ``channels`` are bytes of a window.
    first_block, whole_channels: of a part of a tensor called ``name`` with that many channels: the
    block of the tensor that is the part's first.  places: of each channel, its lane counted over
    all blocks, where they do not follow each other: parts of a concatenation each begin a block.
    grid: of a part with some of the pixels, their places.  spare: pixels of zeros, or of other
    tensors, that follow each channel block in DRAM, where its pixels are words of weights.
    """

    name: str
    channels: int
    height: int
    width: int
    lanes: int
    halo: tuple[int, int, int, int] = (0, 0, 0, 0)
    fill: int | None = None
    image: Image | None = None
    first_block: int = 0
    whole_channels: int | None = None
    places: tuple[int, ...] | None = None
    grid: Grid | None = None
    spare: int = 0

    @property
    def blocks(self) -> int:
        """Channel blocks."""
        lanes = self.places[-1] + 1 if self.places else self.channels
        return -(-lanes // self.lanes)

    @property
    def channel_places(self) -> NDArray[np.int64]:
        """The lane of each channel, counted over all blocks."""
        return np.array(self.places if self.places else range(self.channels), np.int64)

    @property
    def rows(self) -> int:
        """Rows of the whole with the halo."""
        return self.full_size[0] + self.halo[0] + self.halo[2]

    @property
    def columns(self) -> int:
        """Columns of the whole with the halo."""
        return self.full_size[1] + self.halo[1] + self.halo[3]

    @property
    def full_size(self) -> Pair:
        """Height and width of the tensor that this is part of."""
        return (self.grid.height, self.grid.width) if self.grid else (self.height, self.width)

    @property
    def plane(self) -> int:
        """Words from one channel block to the next in DRAM, where there is no halo."""
        height, width = self.full_size
        return height * width + self.spare

    @property
    def all_channels(self) -> "Activation":
        """All channels of the tensor that this is part of, at the same pixels."""
        if self.whole_channels is None:
            return self
        return replace(self, channels=self.whole_channels, first_block=0, whole_channels=None)

    @property
    def all_pixels(self) -> "Activation":
        """All pixels of the tensor that this is part of, of the same channels."""
        height, width = self.full_size
        return replace(self, height=height, width=width, grid=None)

    @property
    def whole(self) -> "Activation":
        """The tensor that this is part of; itself, when it is whole."""
        return self.all_channels.all_pixels

    @property
    def words(self) -> int:
        """Words of ACT."""
        return self.blocks * self.rows * self.columns

    @property
    def buffer(self) -> Buffer:
        """The whole tensor as a buffer."""
        shape = (self.whole.blocks, self.rows, self.columns, self.lanes)
        return Buffer(self.name, shape, DType.INT8, Scope.ACT)

    def place(self, block: Expr, row: Expr, column: Expr, lane: Expr) -> tuple[Expr, ...]:
        """The indices of an element by its place without the halo, as sums of variables."""
        if self.grid:
            (top, left), (down, across) = self.grid.start, self.grid.steps
            row, column = row * down + top, column * across + left
        inside = (block + self.first_block, row + self.halo[0], column + self.halo[1], lane)
        return tuple(linear(index).to_expr() for index in inside)

    def at(self, block: Expr, row: Expr, column: Expr, lane: Expr) -> Load:
        """An element by its place without the halo."""
        return Load(self.buffer, self.place(block, row, column, lane))
