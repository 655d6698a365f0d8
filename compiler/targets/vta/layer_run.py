"""A layer while its tiles are turned into instructions."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen, replace

from ...loops.expressions import Buffer
from ...loops.ir import LoopKind
from .constants import SCALES
from .layers.definition import LoweredLayer
from .layers.tap_row import TAP_GROUP, TapRow
from .nest import Kernel, Loop, Nest
from .ring import Grant
from .tensorize import Match, tensorize
from .windows import Slots

__all__ = ["LayerRun", "TileNest", "iterations", "turned_words"]


@frozen
class LayerRun:
    """A layer while it runs.

    loops: over its tiles.
    bases: the first word of every buffer, by name.
    loaded: parts of constants, by their key.  whole: constants that are loaded as a whole, by name.
    windows: those of inputs that are loaded again for each part of a tile's sums.
    rooms: words of PAR for the parameters of rows, by what they are made of.
    offsets: words of a part of a constant that come before the first one that is read.
    turns: the taps with each of their rows as the first, where they are loaded anew for each turn.
    """

    number: int
    layer: LoweredLayer
    loops: tuple[Loop, ...]
    nests: "tuple[TileNest, ...]"
    constants: dict[str, NDArray[np.generic]]
    bases: dict[str, int]
    loaded: dict[tuple[object, ...], Grant]
    windows: dict[str, Slots]
    whole: dict[str, Grant]
    rooms: dict[str, Grant]
    offsets: dict[str, int] = field(default_factory=dict)
    turns: Sequence[NDArray[np.generic]] = ()

    def with_turned_taps(self, depth: int) -> "LayerRun":
        """This layer with taps that may begin with any of their rows.

        The first rows of taps stand once more behind the last.  If TAP, of ``depth`` words, has no
        room for that, ``turns`` has the taps in every order, and each turn loads those that it
        needs.
        """
        taps, extents = self.constants["taps"], self.layer.kernel.extents
        count, row = turned_words(self.layer.kernel), TapRow.of(extents).words
        size = extents["ky"] * row
        if count * taps.shape[0] > depth:
            behind = taps[:, size:]
            turns = [
                np.concatenate([np.roll(taps[:, :size], -n * row, axis=1), behind], axis=1)
                for n in range(extents["ky"])
            ]
            return replace(self, turns=turns)
        turned = np.take(taps, np.arange(count) % size, axis=1)
        nests = tuple(
            replace(nest, match=nest.match.apart("taps", taps.shape[1], count))
            if "taps" in nest.parts
            else nest
            for nest in self.nests
        )
        return replace(self, nests=nests, constants={**self.constants, "taps": turned})

    def turn(self, rows: int) -> None:
        """Let row ``rows`` of the taps meet the first row that the layer reads."""
        if not self.turns:
            self.offsets["taps"] = rows * TapRow.of(self.layer.kernel.extents).words
        elif self.turns[rows] is not self.constants["taps"]:
            self.constants["taps"] = self.turns[rows]
            for key in [key for key in self.loaded if key[0] == "taps"]:
                del self.loaded[key]


@frozen
class TileNest:
    """A nest as an intrinsic, with its serial loops inside those of the tiles.

    parts: constants of which each iteration loads a part.  whole: constants of which it reads all
    that was loaded.  reads: the names of all its buffers.
    """

    match: Match
    serial: tuple[Loop, ...]
    parts: tuple[str, ...]
    whole: tuple[str, ...]
    reads: frozenset[str]

    @staticmethod
    def of(
        nest: Nest, tiles: Sequence[Loop], parts: Set[str], whole: Set[str], lanes: int
    ) -> "TileNest":
        """Match ``nest``, whose first loops are ``tiles``.  parts, whole: the layer's constants of
        each kind.
        """
        inside = nest.loops[len(tiles) :]
        serial = tuple(loop for loop in inside if loop.kind is LoopKind.SERIAL)
        names = frozenset(ref.buffer.name for ref in nest.refs)
        found = names | {bias for bias, scale in SCALES.items() if scale in names}
        found |= {nest.table.name} if isinstance(nest.table, Buffer) else set()
        some, every = (tuple(sorted(each & found)) for each in (parts, whole))
        return TileNest(tensorize(nest, lanes), serial, some, every, names)


def turned_words(kernel: Kernel) -> int:
    """Words of TAP for the taps of a block of channels that may begin with any of their rows."""
    rows, row = kernel.extents["ky"], TapRow.of(kernel.extents).words
    return -(-(2 * rows - 1) * row // TAP_GROUP) * TAP_GROUP


def iterations(loops: Sequence[Loop]) -> Iterator[dict[str, int]]:
    """Every iteration of ``loops``, the last one varying fastest."""
    names = [loop.name for loop in loops]
    for indices in product(*(range(loop.extent) for loop in loops)):
        yield dict(zip(names, indices, strict=True))
