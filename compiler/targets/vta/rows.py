"""Buffers in ACT for some rows of an activation, used in turn while layers run strip by strip."""

from collections.abc import Iterator

from dovetail.isa.frozen import frozen
from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory

from ...loops.affine import Linear
from ...loops.expressions import Variable
from .dram_parts import load_parts, store_part
from .layers.activation import Activation
from .record import Frame
from .windows import Window

__all__ = ["Piece", "Reader", "RowBuffer", "RowRing", "Run", "mirror_rows"]

MOST_PADDING = 510
"""Words in a row of one LOAD that only fills."""


@frozen
class Reader:
    """Strip ``t`` of layer ``layer`` reads ``length`` rows from ``first + step * t`` on.

    Rows are those of the activation with its halo.
    """

    layer: int
    first: int
    step: int
    length: int
    strips: int

    def start(self, strip: int) -> int:
        """First row that strip ``strip`` reads."""
        return self.first + self.step * strip


@frozen
class Run:
    """``count`` rows from row ``first`` on, one after the other in a buffer from row ``place``."""

    first: int
    count: int
    place: int


@frozen
class RowRing:
    """A buffer of ``depth`` rows, used again and again, and some rows more.

    Row ``r`` is in row ``r % depth`` of the buffer.  If that is below ``mirror``, the row is also
    ``depth`` rows further, so that what a strip reads is never cut in two.

    producers: the layers that make the activation, or each a part of its blocks; none when it is
    loaded from DRAM.
    stored: whether it is stored to DRAM too.  kept: whether all of it stays on chip.
    turned: whether the buffer has only the rows that a strip of its one reader reads.  The reader
    takes them in the order in which they are stored, and its taps turn instead: their first row is
    the one for the row that is stored first.  No row is stored twice then.
    """

    activation: Activation
    depth: int
    mirror: int
    readers: tuple[Reader, ...]
    producers: tuple[int, ...]
    stored: bool = False
    kept: bool = False
    turned: bool = False

    @property
    def shape(self) -> tuple[int, int, int]:
        """Blocks, rows and columns of the buffer."""
        return self.activation.blocks, self.depth + self.mirror, self.activation.columns

    @property
    def words(self) -> int:
        """Words of the buffer."""
        blocks, rows, columns = self.shape
        return blocks * rows * columns

    def window(self, first: int, step: int, loop: str) -> Window:
        """The buffer, for a layer whose strips of loop ``loop`` begin ``step`` rows apart."""
        rows = Linear(first, {Variable(loop): step} if step else {})
        nothing = Linear(0, {})
        return Window(self.activation, self.shape, (nothing, rows, nothing))

    def runs(self, first: int, count: int) -> Iterator[Run]:
        """Every place of ``count`` rows from ``first`` on."""
        row, end = first, first + count
        mirrored = set()
        while row < end:
            place = row % self.depth
            size = min(end - row, self.depth + self.mirror - place)
            yield Run(row, size, place)
            mirrored |= {row + n for n in range(self.depth - place, size)}
            row += min(size, self.depth - place)
        row = first
        while row < end:
            place, size = row % self.depth, 0
            while row + size < end and place + size < self.mirror and row + size not in mirrored:
                size += 1
            if size:
                yield Run(row, size, place + self.depth)
            row += max(size, 1)


def mirror_rows(readers: tuple[Reader, ...], depth: int) -> int:
    """Rows stored twice, so that every strip of ``readers`` finds its rows side by side."""
    ends = (
        reader.start(strip) % depth + reader.length
        for reader in readers
        for strip in range(reader.strips)
    )
    return max(0, max(ends, default=0) - depth)


@frozen
class Piece:
    """``count`` rows of a strip, from its row ``start`` on.  Row 0 of the strip would be at word
    ``base`` of the buffer.
    """

    start: int
    count: int
    base: int


@frozen
class RowBuffer:
    """A ring at word ``place`` of ACT, of an activation at ``dram``."""

    ring: RowRing
    place: int
    dram: int
    bus_bytes: int

    @property
    def user(self) -> int:
        """The layer that it is loaded, filled or stored for."""
        if self.ring.producers:
            return self.ring.producers[0]
        return min(reader.layer for reader in self.ring.readers)

    def start(self, layer: int, strip: int) -> int:
        """First word of what a strip of ``layer`` reads."""
        if self.ring.kept or self.ring.turned:
            return self.place
        return self._word(self._reader(layer).start(strip) % self.ring.depth)

    def turn(self, layer: int, strip: int) -> int:
        """The row of taps that meets the first row of the buffer in a strip of ``layer``."""
        return -self._reader(layer).start(strip) % self.ring.depth if self.ring.turned else 0

    def _reader(self, layer: int) -> Reader:
        (reader,) = (reader for reader in self.ring.readers if reader.layer == layer)
        return reader

    def frame(self, first: int) -> Frame:
        """How pieces from row ``first`` of a result on lie, its halo not counted; their word is
        left open.

        If all of the result stays on chip, how all of it lies.
        """
        _, rows, columns = self.ring.shape
        row = first + self.ring.activation.halo[0]
        return Frame(0, columns, rows * columns, (0, 0 if self.ring.kept else row, 0))

    def pieces(self, first: int, count: int) -> list[Piece] | None:
        """Where rows ``first`` and following of a result go, its halo not counted."""
        if self.ring.kept:
            return None
        row = first + self.ring.activation.halo[0]
        return [
            Piece(run.first - row, run.count, self._word(run.place - (run.first - row)))
            for run in self.ring.runs(row, count)
        ]

    def fetch(self, first: int, count: int) -> Iterator[Load]:
        """Load rows, their halo included."""
        x = self.ring.activation
        for run in self.ring.runs(first, count):
            part = ((0, x.blocks), (run.first, run.count), (0, x.columns))
            word = self._word(run.place)
            yield from load_parts(x, part, self.ring.shape, word, self.dram, self.bus_bytes)

    def put(self, first: int, count: int) -> Iterator[Store]:
        """Store rows."""
        x, row = self.ring.activation, first
        while row < first + count:
            place = row % self.ring.depth
            size = min(first + count - row, self.ring.shape[1] - place)
            part = ((0, x.blocks), (row, size), (0, x.columns))
            yield store_part(x, part, self.ring.shape, self._word(place), self.dram)
            row += size

    def fill(self, first: int, count: int) -> Iterator[tuple[Load, Frame]]:
        """LOADs that give whole rows the value of the halo, and how these rows lie."""
        if not self.ring.kept:
            _, rows, columns = self.ring.shape
            for run in self.ring.runs(first, count):
                word, name = self._word(run.place), self.ring.activation.name
                frame = Frame(word, columns, rows * columns, (0, run.first, 0), halo_of=name)
                for load in self._filled(word, columns, run.count):
                    yield load, frame

    def sides(self) -> Iterator[tuple[Load, Frame]]:
        """LOADs that give the columns of the halo their value, in all rows, and how they lie at
        first.
        """
        x, (_, rows, columns) = self.ring.activation, self.ring.shape
        left, right = x.halo[1], x.halo[3]
        frame = Frame(self.place, columns, rows * columns, halo_of=x.name)
        for first, width in ((0, left), (columns - right, right)):
            for load in self._filled(self.place + first, width, rows):
                yield load, frame

    def _filled(self, word: int, width: int, rows: int) -> Iterator[Load]:
        x, (_, height, columns) = self.ring.activation, self.ring.shape
        if x.fill is None:
            return
        for begin in range(0, width, MOST_PADDING):
            count = min(MOST_PADDING, width - begin)
            yield Load(
                memory=Memory.ACT,
                sram_address=word + begin,
                count_x=0,
                count_y=rows,
                count_z=x.blocks,
                sram_stride_y=columns,
                sram_stride_z=height * columns,
                pad_x_before=count // 2,
                pad_x_after=count - count // 2,
                pad_value=x.fill,
            )

    def _word(self, row: int) -> int:
        return self.place + row * self.ring.shape[2]
