"""Estimated cost of a layer's tile, before it is scheduled: words of ACT and cycles."""

from collections.abc import Mapping, Set
from math import prod

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory

from .image import image_reads
from .layers.activation import Activation
from .model import RowCosts, Traffic, unit_cycles
from .nest import Kernel
from .schedules import AXES
from .windows import reads_few_columns, row_step

__all__ = ["CONSTANTS", "TILE_CYCLES", "Estimator", "Tile"]

CONSTANTS = {"weights": Memory.WGT, "taps": Memory.TAP}
"""Constants of which a tile has only its part, and their memories."""

TILE_CYCLES = 32
"""Estimate: the cost of one more tile, or part of its sums or inputs, besides its moves."""

BEGIN = 8
"""Estimate: nothing else runs in this part (one in so many) of the time that inputs of a first tile
take.
"""


@frozen
class Tile:
    """A layer cut into tiles, and its estimated cost.

    sizes: iterations of c, y, x in a tile; of k in a part of its sums.
    outer: the axes of the loops over tiles, the outermost first.
    words: of ACT, for all buffers.  depth: tiles under way at once.
    cycles: of the layer.  dram: those of them in which DRAM works.
    held: iterations of k whose inputs are in a buffer at a time; 0 where all are.
    """

    sizes: Mapping[str, int]
    outer: tuple[str, ...]
    words: int
    cycles: int
    depth: int
    dram: int
    held: int = 0


@frozen
class _Moved:
    """The data of one activation that a tile of any size moves.

    spans: for block, row and column, how many one iteration touches, and how many more each further
    iteration of an axis adds.
    axes: those with which the data change, also parts of k.
    step: from one row that is moved to the next.
    columns: how many are loaded where a tile has whole rows.
    image: for an image, the LOADs of each block, and the bytes of their rows.
    is_written: whether it is the result.  is_spread: whether its pixels are apart in DRAM.
    is_late: whether nothing else runs while the first or last tile is moved.
    """

    spans: tuple[tuple[int, tuple[tuple[str, int], ...]], ...]
    axes: Set[str]
    step: int
    columns: int | None
    image: tuple[int, int] | None
    is_written: bool
    is_spread: bool
    is_late: bool

    @staticmethod
    def of(
        kernel: Kernel, activation: Activation, config: HardwareConfig, late: Set[str]
    ) -> "_Moved":
        """late: as of ``stream_tiles``."""
        extents, ref = kernel.extents, kernel.refs[activation.name]
        cut = (*AXES, "k")
        spans = []
        for index in ref.indices[:3]:
            low, high = index.limits({**extents, **dict.fromkeys(cut, 1)})
            steps = ((axis, abs(index.coefficient(axis))) for axis in cut)
            spans.append((high - low + 1, tuple((axis, step) for axis, step in steps if step)))
        written = activation.name == kernel.nests[-1].name
        return _Moved(
            tuple(spans),
            {axis for axis in cut if any(index.coefficient(axis) for index in ref.indices)},
            row_step(kernel, activation),
            None if reads_few_columns(kernel, activation) else ref.buffer.shape[2],
            image_reads(activation.image, config) if activation.image else None,
            written,
            written and ref.indices[2].coefficient("x") > 1 and "d" not in extents,
            activation.name in late and not activation.image,
        )

    def shape(self, inside: Mapping[str, int]) -> list[int]:
        """Blocks, rows and columns of a tile with ``inside`` iterations of each axis."""
        found = [
            one + sum(step * (inside[axis] - 1) for axis, step in steps)
            for one, steps in self.spans
        ]
        found[1] = -(-found[1] // self.step)
        return found


class Estimator:
    """Estimates tiles of one layer; computes once whatever does not depend on their sizes.

    depth, late: as of ``stream_tiles``.
    """

    def __init__(
        self,
        kernel: Kernel,
        activations: Mapping[str, Activation],
        config: HardwareConfig,
        depth: int,
        late: frozenset[str],
    ) -> None:
        self._extents, self._config, self._depth = kernel.extents, config, depth
        self._moved = [_Moved.of(kernel, x, config, late) for x in activations.values()]
        self._constants = [
            (memory, kernel.refs[name].buffer.shape)
            for name, memory in CONSTANTS.items()
            if name in kernel.refs
        ]
        self._computing = max(unit_cycles(kernel, config).values())
        self._rows = RowCosts(config)

    def tile(self, sizes: Mapping[str, int], outer: tuple[str, ...], held: int) -> Tile:
        """The cost of tiles of ``sizes``.  held: as of ``Tile``.

        Cycles are those of the busiest of matrix core, vector unit and DRAM, those to finish the
        last tile, and what each tile costs.
        """
        extents, config, depth = self._extents, self._config, self._depth
        cut = {axis: sizes[axis] for axis in AXES} | ({"k": held} if held else {})
        tiles = {axis: extents[axis] // size for axis, size in cut.items()}
        parts = extents.get("k", 1) // sizes.get("k", 1)
        inside, order = extents | cut, (*outer, "k") if held else outer
        word = config.word_bytes(Memory.ACT)
        traffic, alone, begin = (Traffic(config, self._rows) for _ in range(3))
        words = 0
        for moved in self._moved:
            shape = moved.shape(inside)
            row = shape[2] * word
            if tiles["x"] == 1 and moved.columns is not None:
                shape[2] = moved.columns
            again = _changes(order, tiles, moved.axes)
            words += (depth if again > 1 else 1) * prod(shape)
            rows = shape[0] * shape[1]
            if moved.is_late:
                (alone.write if moved.is_written else alone.read)(rows, row, 1)
            elif not moved.is_written and not moved.image:
                begin.read(rows, row, 1)
            if not moved.is_written and moved.image:
                turns, row = moved.image
                traffic.read(again * turns * rows, row, again * turns * shape[0])
            elif not moved.is_written:
                traffic.read(again * rows, row, again)
            elif moved.is_spread:
                traffic.write(again * prod(sizes[axis] for axis in AXES), word, again)
            else:
                traffic.write(again * rows, row, again)
        waiting = traffic.cycles if depth == 1 else 0
        for memory, axes in self._constants:
            size = prod(axes[: -2 if memory is Memory.WGT else -1])
            at_once = size if outer[0] != "c" else size // axes[0] * sizes["c"]
            fits = at_once <= config.depth(memory)
            traffic.read(1 if fits else tiles["y"] * tiles["x"], size * config.word_bytes(memory))
        finish = prod(sizes[axis] for axis in AXES)
        moving = traffic.dram_cycles
        busiest = max(traffic.cycles, self._computing + max(alone.dram_cycles, waiting))
        pieces = prod(tiles[axis] for axis in AXES) * parts
        pieces += prod(tiles.values()) if held else 0
        cycles = busiest + begin.dram_cycles // BEGIN + finish + TILE_CYCLES * pieces
        return Tile(sizes, outer, words, cycles, depth, moving, held)


def _changes(outer: tuple[str, ...], tiles: Mapping[str, int], moving: Set[str]) -> int:
    """How often a tile touches another part than the one before, if parts move with the axes
    ``moving``.
    """
    turning = [axis for axis in outer if tiles[axis] > 1]
    last = max((n for n, axis in enumerate(turning) if axis in moving), default=-1)
    return prod(tiles[axis] for axis in turning[: last + 1])
