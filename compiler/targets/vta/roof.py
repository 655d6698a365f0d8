"""Cycles that no plan of some layers can go below, on a configuration.

See ``docs/planner.md``, "Roof", for why.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory, Unit

from .constants import constant_bytes
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .model import unit_cycles
from .needs import Needs, follows, needs

__all__ = ["Roof", "roof_of"]

UNITS = Unit.GEMM, Unit.VECTOR
TOGETHER = 128
"""Layers whose work is summed up at once."""

Cycles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Roof:
    """gemm, vector: cycles in which these units work.  dram: in which DRAM moves what it must.

    chain: of the longest chain of work and weights that wait for each other.
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
) -> Roof:
    """results: names of activations that are in DRAM in the end."""
    chain = _Chain(layers, config)
    moved = sum(constant_bytes(layer, config) for layer in layers)
    made = (layer.output for layer in layers if layer.output.name in results)
    moved += sum(_size(x, config) for x in (*sources, *made))
    gemm, vector = (int(total) for total in chain.busy.sum(1))
    return Roof(gemm, vector, _beats(moved, config), chain.length())


def _beats(size: int, config: HardwareConfig) -> int:
    """Cycles in which DRAM moves ``size`` bytes."""
    return size // config.bus_bytes * config.dram.beat_interval_cycles


def _size(x: Activation, config: HardwareConfig) -> int:
    """Bytes of all pixels, in blocks; of an image none, because not every pixel need be read."""
    pixels = 0 if x.image else x.blocks * x.height * x.width
    return pixels * config.word_bytes(Memory.ACT)


class _Chain:
    """The earliest begin and end of each layer, when each waits only for what it comes from.

    busy: float64[2, layers], cycles of the units.  weights: words of WGT a layer.  word: cycles in
    which DRAM moves one, at least.  comes_first: float64[layers, layers], 1 where the second layer
    comes after the first one began.
    """

    def __init__(self, layers: Sequence[LoweredLayer], config: HardwareConfig) -> None:
        each = [unit_cycles(layer.kernel, config) for layer in layers]
        self.busy = np.array([[cycles[unit] for cycles in each] for unit in UNITS], float)
        none = np.zeros(0, np.int8)
        sizes = [layer.constants.get("weights", none).nbytes for layer in layers]
        self.weights = np.array(sizes, np.int64) // config.word_bytes(Memory.WGT)
        self.depth = config.wgt_depth
        nibbles = config.nibble_weights and any(layer.nibbles for layer in layers)
        least = config.nibble_bytes if nibbles else config.word_bytes(Memory.WGT)
        self.word = _beats(least, config)
        self.first, self.whole = needs(layers)
        self.comes_first = (self.first.parts.T > 0) | np.eye(len(layers), dtype=bool)
        self.comes_first = self.comes_first.astype(float)
        self.some, all_weights = follows(layers)
        self.all_weights = all_weights.astype(float)
        self.begins, self.ends = np.zeros(len(layers)), np.zeros(len(layers))

    def length(self) -> int:
        """Cycles to the last end."""
        for number in range(len(self.weights)):
            if number % TOGETHER == 0:
                some = slice(number, number + TOGETHER)
                first, whole = (self.work(need, some) for need in (self.first, self.whole))
            row = number % TOGETHER
            before = self.ends[self.first.parts[number] == 1]
            begin = self.after(self.first, number, first[row])
            self.begins[number] = max(begin, before.max(initial=0))
            end = self.after(self.whole, number, whole[row])
            self.ends[number] = max(end, self.last(number))
        return int(self.ends.max(initial=0))

    def work(self, need: Needs, some: slice) -> Cycles:
        """Cycles of what ``need`` says of each of some layers that comes after another one began,
        of the busier unit: float64[some, layers].

        Those of many layers are one product of matrices, which takes a fraction of the time.
        """
        shares = need.parts[some]
        each = [(shares * busy) @ self.comes_first.T for busy in self.busy]
        return np.maximum(*each)

    def after(self, need: Needs, number: int, behind: Cycles) -> float:
        """When the units can have done what ``need`` says of a layer, and its weights have come.

        behind: the layer's row of ``work``.
        Of two layers, work of the second that the first is needed for comes after the first began.
        When the first of some layers begins, WGT holds no more of their weights than it is deep.
        """
        share = need.parts[number]
        before = np.flatnonzero(share)
        if not len(before):
            return 0
        work = self.busy * share
        chains = self.begins + behind
        whole = before[need.wholly[number, before] & (self.weights[before] > 0)]
        latest = whole[np.argsort(-self.begins[whole], kind="stable")]
        come = np.cumsum(self.weights[latest])
        arrivals = self.begins[latest] + (come - self.depth) * self.word
        return max(
            work.sum(1).max(), chains[before].max(), come.max(initial=0) * self.word,
            arrivals.max(initial=0),
        )  # fmt: skip

    def last(self, number: int) -> float:
        """When weights can have come that its last results need after the end of another layer."""
        between = self.some[:, number].copy()
        between[number] = True
        words = self.all_weights @ (between * self.weights)
        ends = self.ends + (words - self.depth) * self.word
        return ends[self.some[:, number]].max(initial=0)
