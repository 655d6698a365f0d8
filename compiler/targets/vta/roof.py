"""Cycles that no plan of some layers can go below, on a configuration.

See ``docs/planner.md``, "Roof", for why.
"""

from collections.abc import Container, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory, Unit

from .distinct import distinct_bytes, distinct_weights
from .follows import follows
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .model import issue_counts
from .needs import Needs, needs

__all__ = ["Roof", "roof_of"]

UNITS = Unit.GEMM, Unit.VECTOR
TOGETHER = 128
"""Layers whose work is summed up at once."""

Cycles = NDArray[np.float64]


@frozen
class Roof:
    """gemm, vector: cycles in which these units work.  dram: cycles in which it moves what it must.
    chain: cycles of the longest chain of work and weights that wait for each other.
    """

    gemm: int
    vector: int
    dram: int
    chain: int

    @property
    def cycles(self) -> int:
        """The largest of all."""
        return max(self.gemm, self.vector, self.dram, self.chain)


def roof_of(
    layers: Sequence[LoweredLayer],
    sources: Sequence[Activation],
    results: Container[str],
    config: HardwareConfig,
    read: Mapping[str, frozenset[int]] | None = None,
) -> Roof:
    """results: names of activations that are in DRAM in the end.  read: as of ``Ends``."""
    chain = _Chain(layers, config)
    moved = distinct_bytes(layers, config) + int(chain.distinct @ chain.bytes)
    made = (layer.output for layer in layers if layer.output.name in results)
    moved += sum(_size(x, x.blocks, config) for x in sources)
    moved += sum(_size(x, _blocks(x, read or {}), config) for x in made)
    gemm, vector = (int(total) for total in chain.busy.sum(1))
    return Roof(gemm, vector, _beats(moved, config), chain.length())


def _beats(size: int, config: HardwareConfig) -> int:
    """Cycles in which DRAM moves ``size`` bytes."""
    return size // config.bus_bytes * config.dram.beat_interval_cycles


def _blocks(x: Activation, read: Mapping[str, frozenset[int]]) -> int:
    """Blocks of a result that are stored."""
    own = range(x.first_block, x.first_block + x.blocks)
    return len(read[x.name].intersection(own)) if x.name in read else x.blocks


def _size(x: Activation, blocks: int, config: HardwareConfig) -> int:
    """Bytes of all pixels of ``blocks`` blocks; 0 for an image: not every pixel need be read."""
    pixels = 0 if x.image else blocks * x.height * x.width
    return pixels * config.word_bytes(Memory.ACT)


class _Chain:
    """The earliest beginning and end of each layer, if each waits only for what it is computed
    from.

    begins, ends: of each layer.  tiles: the earliest end of all products with one tile of its
    weights.

    busy: float64[2, layers], cycles of GEMM and VECTOR.
    distinct: words of WGT of each layer that are not in one before.  bytes, word: the size of one
    of them in DRAM, and the cycles that DRAM takes for it.  moved: the cycles for all.
    first, tile, whole: needs of each layer's first products, of a tile of its weights, of all.
    comes_first: float64[layers, layers]; ``[n, m]`` is 1 where layer ``m`` comes after layer ``n``
    began.
    some, all_weights: as of ``follows``.
    """

    def __init__(self, layers: Sequence[LoweredLayer], config: HardwareConfig) -> None:
        each = [issue_counts(layer.kernel, config) for layer in layers]
        self.busy = np.array([[cycles[unit] for cycles in each] for unit in UNITS], float)
        self.distinct = distinct_weights(layers, config)
        self.depth = config.wgt_depth
        sizes = [
            config.nibble_bytes
            if config.nibble_weights and layer.nibbles
            else config.word_bytes(Memory.WGT)
            for layer in layers
        ]
        self.bytes = np.array(sizes, np.int64)
        self.word = np.array([_beats(size, config) for size in sizes], np.int64)
        self.moved = self.distinct * self.word
        self.first, self.tile, self.whole = needs(layers)
        self.comes_first = (self.first.parts.T > 0) | np.eye(len(layers), dtype=bool)
        self.comes_first = self.comes_first.astype(float)
        self.some, all_weights = follows(layers)
        self.all_weights = all_weights.astype(float)
        self.begins, self.tiles, self.ends = (np.zeros(len(layers)) for _ in range(3))

    def length(self) -> int:
        """Cycles until the last end."""
        for number in range(len(self.distinct)):
            if number % TOGETHER == 0:
                some = slice(number, number + TOGETHER)
                each = (self.work(need, some) for need in (self.first, self.tile, self.whole))
                first, tile, whole = each
                moved = self.moved_after(some)
            row = number % TOGETHER
            before = self.ends[self.first.parts[number] == 1]
            begin = self.after(self.first, number, first[row])
            self.begins[number] = begin = max(begin, before.max(initial=0))
            self.tiles[number] = max(begin, self.after(self.tile, number, tile[row]))
            end = self.after(self.whole, number, whole[row])
            self.ends[number] = max(end, self.last(number, moved[:, row]))
        come = self.come(np.flatnonzero(self.distinct))
        return int(max(self.ends.max(initial=0), come, self.behind().max(initial=0)))

    def behind(self) -> Cycles:
        """The earliest end of all that comes after the beginning of each layer: float64[layers].

        WGT may hold weights of it before, but no more than it is deep.
        """
        work = (self.busy @ self.comes_first.T).max(0)
        moved = self.comes_first @ self.moved
        held = self.depth * (self.comes_first * self.word).max(1, initial=0)
        return self.begins + np.maximum(work, moved - held)

    def work(self, need: Needs, some: slice) -> Cycles:
        """Cycles of the busier unit for work that layers ``some`` need, as ``need`` says, and that
        comes after each layer began: float64[some, layers].

        The work of many layers is one product of matrices, which takes a fraction of the time.  No
        layer needs one behind it, so those are left out.
        """
        before = slice(some.stop)
        shares, comes_first = need.parts[some, before], self.comes_first[before, before]
        each = [(shares * busy[before]) @ comes_first.T for busy in self.busy]
        return np.maximum(*each)

    def moved_after(self, some: slice) -> Cycles:
        """Cycles in which DRAM moves weights that are used between the end of each layer and one of
        ``some``, if all of them are used after that end: float64[layers, some].
        """
        before = slice(some.stop)
        between = self.some[before, some].astype(float)
        np.fill_diagonal(between[some.start :], 1)
        return self.all_weights[:, before] @ (between * self.moved[before, None])

    def after(self, need: Needs, number: int, behind: Cycles) -> float:
        """The earliest end of what ``need`` says of layer ``number``, with its weights there.

        behind: the layer's row of ``work``.  It is added to the beginning of each layer, since that
        work cannot begin earlier.
        """
        share = need.parts[number]
        before = np.flatnonzero(share)
        if not len(before):
            return 0
        work = self.busy * share
        chains = self.begins[: len(behind)] + behind
        whole = before[need.wholly[number, before] & (self.distinct[before] > 0)]
        return max(work.sum(1).max(), chains[before].max(), self.come(whole))

    def come(self, some: NDArray[np.intp]) -> float:
        """The earliest time at which all weights of layers ``some`` can have come.

        Until a layer can be done with one of its tiles (``tiles``), none of its weights may leave
        WGT, which holds no more of them than it is deep.
        """
        latest = some[np.argsort(-self.tiles[some], kind="stable")]
        moved = np.cumsum(self.moved[latest])
        held = self.depth * np.maximum.accumulate(self.word[latest])
        return max(moved.max(initial=0), (self.tiles[latest] + moved - held).max(initial=0))

    def last(self, number: int, moved: Cycles) -> float:
        """The earliest time at which the weights can have come that the last results of layer
        ``number`` need after the ends of other layers.

        moved: the layer's column of ``moved_after``.
        """
        after = self.some[:, number]
        held = self.depth * max(self.word[number], self.word[after].max(initial=0))
        ends = self.ends + moved - held
        return ends[after].max(initial=0)
