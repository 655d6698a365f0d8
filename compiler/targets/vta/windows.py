"""Activations that stay in DRAM: the part of one that a tile touches, and how it is moved."""

from collections.abc import Mapping
from math import gcd

from dovetail.isa.frozen import frozen, replace
from dovetail.isa.instructions import Load, Store

from ...loops.affine import Linear
from ...loops.expressions import Expr, Variable
from .dram_parts import load_parts, store_part, store_pixels
from .image import Span
from .layers.activation import Activation
from .nest import Kernel, Ref, Total, map_refs
from .record import Frame
from .schedules import AXES, Tiling

__all__ = ["SLOTS", "Slots", "Window", "localized", "reads_few_columns", "row_step", "windows_of"]

SLOTS = 2
"""Buffers for each activation in DRAM: one is filled or emptied while a tile works on another."""

PARTS = "k.outer"
"""The loop over the parts of a tile's sums."""

COLUMNS = 2
"""The axis of columns.  Where a tile has all of them, its buffer also has the halo's, so that two
buffers of one width have one shape, whatever touches them.
"""

NARROW = 2
"""Where an activation has at least so many times the columns that a layer reads, only those are
loaded.
"""

ROWS = 1
"""The axis of rows."""


@frozen
class Window:
    """The part of ``activation`` that a kernel touches in one tile, and the buffer that holds it.

    shape: blocks, rows and columns of the buffer.
    origin: the block, row and column of the activation at which the buffer begins, halo included,
    as indices of the loops over tiles.
    depth: tiles under way at once, or parts of one.
    turns: how many parts of a tile's sums find their blocks in one buffer, if not all do; else 1.
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
        """How many buffers there are: ``depth``, or one when all tiles touch the same part."""
        return self.depth if any(index.terms for index in self.origin) else 1

    @property
    def of_parts(self) -> bool:
        """True if the buffer holds only what one part of a tile's sums touches."""
        return self.origin[0].coefficient(PARTS) != 0

    @property
    def words(self) -> int:
        """Words of one buffer."""
        blocks, rows, columns = self.shape
        return blocks * rows * columns

    def place(self, tile: Mapping[str, int]) -> tuple[int, ...]:
        """``origin`` at one tile, or at the first of the parts that share a buffer."""
        if self.turns > 1:
            tile = {**tile, PARTS: tile[PARTS] // self.turns * self.turns}
        return tuple(index.at(tile) for index in self.origin)

    def first_word(self, tile: Mapping[str, int]) -> int:
        """The word of the buffer at which the blocks for one part of a tile's sums begin."""
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
        """Store the part of one tile, except its halo, from the buffer at word ``sram``.

        There is no STORE where the tile has only columns behind the last one.
        """
        part = self._parts(tile)
        if self.activation.grid:
            return tuple(store_pixels(self.activation, part, self.shape, sram, dram))
        store = store_part(self.activation, part, self.shape, sram, dram)
        return (store,) if store.count_x else ()

    def _parts(self, tile: Mapping[str, int]) -> list[Span]:
        """The part of the whole activation that the tile touches, with halo, in each dimension."""
        return list(zip(self.place(tile), self.shape, strict=True))


class Slots:
    """The buffers of one window, used in turn, and what each holds."""

    def __init__(self, window: Window, sram: int, dram: int, bus_bytes: int) -> None:
        """``sram``: first word of the buffers, one after the other.  ``dram``: the activation."""
        self._window, self._sram, self._dram = window, sram, dram
        self._bus_bytes = bus_bytes
        self._held: list[tuple[int, ...] | None] = [None] * window.slots
        self._last = -1

    def fetch(self, tile: Mapping[str, int]) -> tuple[int, tuple[Load, ...]]:
        """First word of a buffer with the part of ``tile``, and LOADs if it is not there yet."""
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
        """How the buffer of ``tile`` holds its part; the buffer's first word is left open."""
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
    """Distance between the rows of ``x`` that ``kernel``, not yet in tiles, reads.

    A 1x1 convolution with steps of 2 skips every second row.  The distance is 1 where the kernel
    writes ``x``, or reads some of its halo.
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
    """True if ``kernel``, not yet in tiles, reads so few columns of ``x``, as a layer that moves
    pixels does, that it is better to load no others.
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

    Parts that a tile reads must be fetched before it, and parts that it writes put back after it.
    """
    if not windows:
        return kernel

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
