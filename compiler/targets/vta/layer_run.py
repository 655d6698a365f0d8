"""A layer while its tiles are turned into instructions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ...loops.ir import LoopKind
from .layers.definition import LoweredLayer
from .nest import Loop, Nest
from .ring import Grant
from .tensorize import Match, tensorize
from .windows import Slots

__all__ = ["LayerRun", "TileNest", "iterations"]


@dataclass(frozen=True, slots=True)
class LayerRun:
    """A layer while it runs.

    loops: over its tiles.  bases: first word of every buffer, by name.  loaded: parts of constants
    by their key.  windows: those of inputs that are loaded anew for each part of a tile's sums.
    """

    number: int
    layer: LoweredLayer
    loops: tuple[Loop, ...]
    nests: "tuple[TileNest, ...]"
    constants: Mapping[str, NDArray[np.generic]]
    bases: dict[str, int]
    loaded: dict[tuple[object, ...], Grant]
    windows: dict[str, Slots]


@dataclass(frozen=True, slots=True)
class TileNest:
    """A nest as an intrinsic, its serial loops inside those of the tiles, and what it loads.

    parts: constants of which each iteration loads its part.  reads: all buffers.
    """

    match: Match
    serial: tuple[Loop, ...]
    parts: tuple[str, ...]
    reads: frozenset[str]

    @staticmethod
    def of(nest: Nest, tiles: Sequence[Loop], parts: set[str], lanes: int) -> "TileNest":
        """Match ``nest``, whose first loops are ``tiles``; ``parts`` are those of the layer."""
        inside = nest.loops[len(tiles) :]
        serial = tuple(loop for loop in inside if loop.kind is LoopKind.SERIAL)
        names = frozenset(ref.buffer.name for ref in nest.refs)
        return TileNest(tensorize(nest, lanes), serial, tuple(sorted(parts & names)), names)


def iterations(loops: Sequence[Loop]) -> Iterator[dict[str, int]]:
    """Every iteration of ``loops``, the last one varying fastest."""
    names = [loop.name for loop in loops]
    for indices in product(*(range(loop.extent) for loop in loops)):
        yield dict(zip(names, indices, strict=True))
