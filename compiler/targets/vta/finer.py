"""Finer instructions for layers all on chip, where GEMM and VECTOR would wait for each other.

GEMM sums up all channels of a tile at once, and VECTOR goes on with whole tiles.  So a convolution
behind a layer for VECTOR waits for the last of its channels, and VECTOR waits for the first tile of
a convolution before it.
"""

from collections.abc import Mapping, Sequence

from dovetail.isa.frozen import replace
from dovetail.isa.memories import Unit

from .block_cascade import steps_by
from .chain import keeps_channels
from .grains import PLANES, Grain
from .layers.definition import LoweredLayer
from .nest import Kernel
from .schedules import Limits, Tiling, default_tiling, divisors

__all__ = ["finer_tiling"]

NEAR = 2
"""Layers behind one that may go on with its blocks, at most: ACC has two banks for their sums."""

WORTH = 2
"""A layer of VECTOR beside a convolution is worth finer instructions if it takes at least this part
(one in so many) of the convolution's cycles.
"""

LONG = 3000
"""Cycles of a convolution that are worth finer instructions, at least."""

MORE_TILES = 2
"""Times as many tiles for a convolution whose blocks the vector unit goes on with."""

PARTS = 4
"""Parts in which a convolution sums up what a layer makes, if its blocks can be divided so."""


def finer_tiling(
    layers: Sequence[LoweredLayer],
    number: int,
    cycles: Sequence[Mapping[Unit, int]],
    limits: Limits,
    depth: int,
    grain: Grain,
) -> Tiling:
    """The tiles of a layer that is all on chip.  cycles: of each layer's units."""
    kernel = layers[number].kernel
    tiling = default_tiling(kernel, limits, depth, grain)
    if not grain.planes or not has_all_pixels(kernel, tiling):
        return tiling
    if grain == PLANES and leads(layers, number, cycles):
        tiling = default_tiling(kernel, limits, depth, with_more_tiles(grain))
    if sums_follow(layers, number, cycles):
        tiling = in_parts(tiling, kernel.extents["k"])
    return tiling


def has_all_pixels(kernel: Kernel, tiling: Tiling) -> bool:
    """True if tiles have all pixels of some channels, so that each weight comes once."""
    return all(tiling.sizes[axis] == kernel.extents[axis] for axis in ("y", "x"))


def sums_follow(
    layers: Sequence[LoweredLayer], number: int, cycles: Sequence[Mapping[Unit, int]]
) -> bool:
    """True if a layer sums up, block by block, what the vector unit makes just before, and both
    take long enough for the matrix core to wait.  cycles: of each layer's units.
    """
    layer = layers[number]
    if not _has_long_sums(layer, cycles[number]) or "k" not in layer.kernel.extents:
        return False
    return any(
        steps_by(layer.kernel, layers[other].output.name, "k")
        and _waits(layers, number, other, cycles)
        for other in range(max(0, number - NEAR), number)
    )


def leads(
    layers: Sequence[LoweredLayer], number: int, cycles: Sequence[Mapping[Unit, int]]
) -> bool:
    """True if the vector unit goes on with each block that a layer sums up, and both take long
    enough for the first tile to matter.  cycles: of each layer's units.
    """
    name, others = layers[number].output.name, range(number + 1, number + 1 + NEAR)
    return _has_long_sums(layers[number], cycles[number]) and any(
        keeps_channels(layers[other], {name})
        and name in {x.name for x in layers[other].inputs}
        and _waits(layers, number, other, cycles)
        for other in others
        if other < len(layers)
    )


def _waits(
    layers: Sequence[LoweredLayer], summed: int, plain: int, cycles: Sequence[Mapping[Unit, int]]
) -> bool:
    """True if layer ``plain`` is for the vector unit alone, and not short beside ``summed``."""
    long = WORTH * cycles[plain][Unit.VECTOR] >= cycles[summed][Unit.GEMM]
    return long and not _has_sums(layers[plain])


def _has_long_sums(layer: LoweredLayer, cycles: Mapping[Unit, int]) -> bool:
    return cycles[Unit.GEMM] >= LONG and _has_sums(layer) and not layer.kernel.by_rows


def _has_sums(layer: LoweredLayer) -> bool:
    return "acc" in layer.kernel.refs


def in_parts(tiling: Tiling, blocks: int) -> Tiling:
    """``tiling`` with sums over ``blocks`` in parts, so that one begins before all are made."""
    few = (each for each in divisors(blocks) if each < 2 * PARTS)
    parts = min(few, key=lambda each: (abs(each - PARTS), -each))
    return replace(tiling, sizes={**tiling.sizes, "k": blocks // parts})


def with_more_tiles(grain: Grain) -> Grain:
    """``grain`` for a layer that leads."""
    return replace(grain, tiles=MORE_TILES * grain.tiles)
