"""Activations that stay in DRAM: the part of one that a tile touches, and how it is moved."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory

from ...loops.affine import Linear
from ...loops.expressions import Expr, Variable
from .image import Span, cut, load_windows
from .layers.activation import Activation
from .nest import Kernel, Ref, Total, map_refs
from .record import Frame
from .schedules import AXES, Tiling

__all__ = [
    "SLOTS",
    "Slots",
    "Window",
    "load_parts",
    "localized",
    "reads_few_columns",
    "row_step",
    "store_part",
    "windows_of",
]

SLOTS = 2
"""Buffers for each activation in DRAM: one is filled or emptied while a tile works on another."""

PARTS = "k.outer"
"""The loop over the parts of a tile's sums."""

COLUMNS = 2
"""The axis of columns; where a tile has all of them, a buffer has the halo's too.

So two buffers of one width have one shape, whatever touches them.
"""

NARROW = 2
"""Times as many columns as a layer reads are too many to be loaded with them."""

ROWS = 1
"""The axis of rows."""


@dataclass(frozen=True, slots=True)
class Window:
    """What a kernel touches of ``activation`` in one tile, and the buffer that holds it.

    shape: blocks, rows and columns of the buffer.
    origin: block, row and column of the activation, the halo included, at which the buffer begins;
    an index of the loops over tiles.
    depth: tiles, or parts of one, under way at once.
    turns: parts of a tile's sums that find their blocks in one buffer, if not all do.
    step: from a row that the buffer holds to the next, where the kernel skips those between.
    """

    activation: Activation
    shape: tuple[int, int, int]
    origin: tuple[Linear, Linear, Linear]
    depth: int = SLOTS
    turns: int = 1
    step: int = 1

    @property
    def slots(self) -> int:
        """Buffers: ``depth``, or one when all tiles touch the same part."""
        return self.depth if any(index.terms for index in self.origin) else 1

    @property
    def of_parts(self) -> bool:
        """Whether it holds what one part of a tile's sums touches."""
        return self.origin[0].coefficient(PARTS) != 0

    @property
    def words(self) -> int:
        """Words of one buffer."""
        blocks, rows, columns = self.shape
        return blocks * rows * columns

    def place(self, tile: Mapping[str, int]) -> tuple[int, ...]:
        """``origin`` for one tile, or for the first of the parts that a buffer serves."""
        if self.turns > 1:
            tile = {**tile, PARTS: tile[PARTS] // self.turns * self.turns}
        return tuple(index.at(tile) for index in self.origin)

    def first_word(self, tile: Mapping[str, int]) -> int:
        """The word of the buffer at which the blocks of one part of a tile's sums begin."""
        if self.turns == 1:
            return 0
        _, rows, columns = self.shape
        return tile[PARTS] % self.turns * self.origin[0].coefficient(PARTS) * rows * columns

    def loads(
        self, tile: Mapping[str, int], sram: int, dram: int, bus_bytes: int
    ) -> tuple[Load, ...]:
        """Fetch the part of one tile, halo included, into the buffer at word ``sram``."""
        part = self._parts(tile)
        return tuple(
            load_parts(self.activation, part, self.shape, sram, dram, bus_bytes, self.step)
        )

    def stores(self, tile: Mapping[str, int], sram: int, dram: int) -> tuple[Store, ...]:
        """Put the part of one tile, but for its halo, from the buffer at word ``sram``.

        None where the tile has columns behind the last only.
        """
        part = self._parts(tile)
        if self.activation.grid:
            return tuple(store_pixels(self.activation, part, self.shape, sram, dram))
        store = store_part(self.activation, part, self.shape, sram, dram)
        return (store,) if store.count_x else ()

    def _parts(self, tile: Mapping[str, int]) -> list[Span]:
        """What the tile touches of the whole activation, halo included, in each dimension."""
        return list(zip(self.place(tile), self.shape, strict=True))


def load_parts(
    x: Activation,
    part: Sequence[Span],
    shape: tuple[int, int, int],
    sram: int,
    dram: int,
    bus_bytes: int,
    step: int = 1,
) -> Iterator[Load]:
    """Fetch blocks, rows and columns ``part`` of ``x``, whose halo it has in DRAM not.

    shape: blocks, rows and columns of the buffer; ``sram``: its word that gets the first.
    step: from a row of the part to the next; if more than 1, none lies in the halo.
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
    """Put blocks, rows and columns ``part`` of ``x``, but for its halo; else as ``load_parts``."""
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
    """As ``store_part``, only the pixels of ``x`` that lie in its grid."""
    assert x.grid is not None
    blocks, *spans = part
    rows, columns = (
        _taken(span, before, start, step, count)
        for span, before, start, step, count in zip(
            spans, x.halo, x.grid.start, x.grid.steps, (x.height, x.width), strict=False
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
            dram_stride_y=_bytes(x, 0, x.grid.steps[0], 0),
            sram_stride_y=x.grid.steps[0] * shape[2],
        )
        if x.grid.steps[1] > 1:
            # Words apart in a row are rows of one word.
            store = replace(
                store,
                count_x=1,
                count_y=columns[1],
                count_z=rows[1],
                dram_stride_y=_bytes(x, 0, 0, x.grid.steps[1]),
                dram_stride_z=_bytes(x, 0, x.grid.steps[0], 0),
                sram_stride_y=x.grid.steps[1],
                sram_stride_z=x.grid.steps[0] * shape[2],
            )
        yield store


def _taken(span: Span, before: int, start: int, step: int, count: int) -> Span:
    """The first of ``count`` rows, ``step`` apart from ``start`` on, in ``span``; how many are.

    ``span`` counts the ``before`` rows of the halo, the result does not.
    """
    low, high = span[0] - before, span[0] + span[1] - before
    first = max(0, -(-(low - start) // step))
    last = min(count, -(-(high - start) // step))
    return start + first * step, last - first


def _bytes(x: Activation, block: int, row: int, column: int) -> int:
    """Place of a word of ``x`` in DRAM, where it has no halo."""
    return (block * x.plane + row * x.full_size[1] + column) * x.lanes


class Slots:
    """The buffers of one window, used in turn, and what each holds."""

    def __init__(self, window: Window, sram: int, dram: int, bus_bytes: int) -> None:
        """``sram``: first word of the buffers, one after the other.  ``dram``: the activation."""
        self._window, self._sram, self._dram = window, sram, dram
        self._bus_bytes = bus_bytes
        self._held: list[tuple[int, ...] | None] = [None] * window.slots
        self._last = -1

    def fetch(self, tile: Mapping[str, int]) -> tuple[int, tuple[Load, ...]]:
        """First word of a buffer with the part of ``tile``; what loads it, if it is not there."""
        place, first = self._window.place(tile), self._window.first_word(tile)
        if place in self._held:
            return self._word(self._held.index(place)) + first, ()
        word = self.next()
        self._held[self._last] = place
        return word + first, self._window.loads(tile, word, self._dram, self._bus_bytes)

    def next(self) -> int:
        """First word of the buffer whose turn it is."""
        self._last = (self._last + 1) % len(self._held)
        return self._word(self._last)

    def frame(self, tile: Mapping[str, int]) -> Frame:
        """How the buffer of ``tile`` holds its part; without its first word."""
        block, row, column = self._window.place(tile)
        _, rows, columns = self._window.shape
        return Frame(0, columns, rows * columns, (block, row, column))

    def put(self, tile: Mapping[str, int]) -> tuple[Store, ...]:
        """Store the part of ``tile`` from the buffer that was given out last."""
        return self._window.stores(tile, self._word(self._last), self._dram)

    def _word(self, slot: int) -> int:
        return self._sram + slot * self._window.words


def windows_of(
    kernel: Kernel, activations: Mapping[str, Activation], tiling: Tiling
) -> dict[str, Window]:
    """The window of each of ``activations`` that ``kernel``, not yet in tiles, touches."""
    refs = kernel.refs
    return {
        name: _window(kernel, refs[name], activations[name], tiling)
        for name in refs
        if name in activations
    }


def row_step(kernel: Kernel, x: Activation) -> int:
    """From a row of ``x`` that ``kernel``, not yet in tiles, reads to the next: a 1x1 convolution
    with steps of 2 skips every second one.

    1 where it writes ``x``, or reads some of its halo.
    """
    if x.image or x.grid or x.name == kernel.nests[-1].name:
        return 1
    steps, last = 0, x.halo[0] + x.height - 1
    for nest in kernel.nests:
        extents = nest.extents
        for index in (ref.indices[ROWS] for ref in nest.refs if ref.buffer.name == x.name):
            low, high = index.limits(extents)
            if low < x.halo[0] or high > last or isinstance(nest.value, Total):
                return 1
            moving = (atom.name for atom in index.terms if isinstance(atom, Variable))
            steps = gcd(steps, *(index.coefficient(name) for name in moving if extents[name] > 1))
    return max(steps, 1)


def reads_few_columns(kernel: Kernel, x: Activation) -> bool:
    """Whether ``kernel``, not yet in tiles, reads some columns of ``x``, as a layer that moves
    pixels does, and so few that the others had better not be loaded.
    """
    if x.image or x.name == kernel.nests[-1].name:
        return False
    spans = list[tuple[int, int]]()
    for nest in kernel.nests:
        for ref in nest.refs:
            if ref.buffer.name == x.name and isinstance(nest.value, Total):
                return False
            if ref.buffer.name == x.name:
                spans.append(ref.indices[COLUMNS].limits(nest.extents))
    return len(set(spans)) == 1 and NARROW * (spans[0][1] + 1 - spans[0][0]) <= x.columns


def _window(kernel: Kernel, ref: Ref, activation: Activation, tiling: Tiling) -> Window:
    extents, step = kernel.extents, row_step(kernel, activation)
    sizes = {axis: tiling.sizes[axis] for axis in AXES}
    inside, turns = {**extents, **sizes}, 1
    if tiling.held and ref.indices[0].coefficient("k"):
        sizes["k"], inside["k"] = tiling.sizes["k"], tiling.held
        turns = tiling.held // tiling.sizes["k"]
    shape, origin = [], []
    for axis, index in enumerate(ref.indices[:3]):
        low, high = index.limits(inside)
        moves: dict[Expr, int] = {
            Variable(f"{name}.outer"): index.coefficient(name) * size
            for name, size in sizes.items()
            if index.coefficient(name) and size < extents[name]
        }
        if axis == COLUMNS and not moves and not reads_few_columns(kernel, activation):
            low, high = 0, activation.columns - 1
        shape.append(high - low + 1)
        origin.append(Linear(low, moves))
    return Window(
        activation,
        (shape[0], -(-shape[ROWS] // step), shape[2]),
        (origin[0], origin[1], origin[2]),
        tiling.depth,
        turns,
        step,
    )


def localized(kernel: Kernel, windows: Mapping[str, Window]) -> Kernel:
    """``kernel`` on buffers that hold only what one tile touches of the activations ``windows``.

    Before each tile the parts it reads must be fetched, and after it those it writes put back.
    """

    def local(ref: Ref) -> Ref:
        window = windows.get(ref.buffer.name)
        if window is None:
            return ref
        small = replace(ref.buffer, shape=(*window.shape, ref.buffer.shape[-1]))
        block, row, column = (
            index - origin for index, origin in zip(ref.indices[:3], window.origin, strict=True)
        )
        terms = {atom: factor // window.step for atom, factor in row.terms.items()}
        row = Linear(row.constant // window.step, terms)
        return Ref(small, (block, row, column, ref.indices[3]))

    return replace(kernel, nests=tuple(map_refs(nest, local) for nest in kernel.nests))
