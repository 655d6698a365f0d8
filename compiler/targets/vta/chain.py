"""Layers that run one by one, all on chip, but overlap.

Each reads no more than the same channels of those before, so it follows them tile by tile while the
other unit goes on.
"""

from collections.abc import Container, Mapping, Sequence

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen, replace
from dovetail.isa.memories import Memory, Unit

from .block_cascade import is_plain, steps_by
from .constant_loads import CONSTANTS, layer_constants
from .layers.definition import LoweredLayer
from .schedules import AXES, Tiling, divisors
from .stream import StreamedLayer

__all__ = [
    *("MORE_TILES", "UNITS", "Chain", "chain_cycles", "in_parts", "keeps_channels", "leads", "shares_taps"),
    "sums_follow",
]

UNITS = Unit.GEMM, Unit.VECTOR
"""The units that compute."""

MARGIN = 1.1
"""Estimate: units wait for each other's tiles."""


NEAR = 2
"""Layers behind one that may go on with its blocks, at most: ACC has two banks for their sums."""

WORTH = 2
"""A layer between sums is worth smaller instructions if it takes at least this part of theirs."""

MORE_TILES = 2
"""Times as many tiles that a layer has whose blocks the vector unit goes on with."""

PARTS = 4
"""Parts of sums that follow a layer, if its blocks can be divided so."""


@frozen
class Chain:
    """A way to run such layers; plans have a choice for each of them (``Choice.apart``)."""


def keeps_channels(layer: LoweredLayer, names: Container[str]) -> bool:
    """True if each block that ``layer`` makes comes from the same block alone of its inputs in
    ``names``, all of which are whole tensors.
    """
    inputs = [x for x in layer.inputs if x.name in names]
    return not layer.kernel.by_rows and all(
        is_plain(x) and steps_by(layer.kernel, x.name, "c") for x in inputs
    )


def sums_follow(
    layers: Sequence[LoweredLayer], number: int, cycles: Sequence[Mapping[Unit, int]]
) -> bool:
    """True if a layer sums up, block by block, what the vector unit makes just before, and this
    takes long enough for the matrix core to wait.  cycles: of each layer's units.
    """
    layer = layers[number]
    if not _has_sums(layer) or layer.kernel.by_rows or "k" not in layer.kernel.extents:
        return False
    return any(
        steps_by(layer.kernel, layers[other].output.name, "k")
        and _waits(layers, number, other, cycles)
        for other in range(max(0, number - NEAR), number)
    )


def leads(
    layers: Sequence[LoweredLayer], number: int, cycles: Sequence[Mapping[Unit, int]]
) -> bool:
    """True if the vector unit goes on with each block that a layer sums up, and takes long enough
    for the first to matter.  cycles: of each layer's units.
    """
    name, others = layers[number].output.name, range(number + 1, number + 1 + NEAR)
    return _has_sums(layers[number]) and any(
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


def _has_sums(layer: LoweredLayer) -> bool:
    return "acc" in layer.kernel.refs


def in_parts(tiling: Tiling, blocks: int) -> Tiling:
    """``tiling`` with sums over ``blocks`` in parts, so that one begins before all are made."""
    few = (each for each in divisors(blocks) if each < 2 * PARTS)
    parts = min(few, key=lambda each: (abs(each - PARTS), -each))
    return replace(tiling, sizes={**tiling.sizes, "k": blocks // parts})


def shares_taps(
    first: int, planned: Sequence[StreamedLayer], alone: Container[int], config: HardwareConfig
) -> range:
    """The layers of a chain from number ``first`` on, if their taps do not fit in TAP together.

    They then come tile by tile, in the order in which tiles could run: those of the next layer
    would else come after all of the one before.  planned: of all layers.  alone: numbers of those
    that run one by one.
    """
    made, words, taps = set[str](), dict.fromkeys((Memory.PAR, Memory.TAB), 0), list[int]()
    end = first
    for number in range(first, len(planned)):
        each = planned[number]
        layer, sizes = each.layer, each.tiling.sizes
        follows = not made or made & {x.name for x in layer.inputs}
        if number not in alone or each.windows or not keeps_channels(layer, made) or not follows:
            break
        if each.tiling.outer != AXES or layer.stored is not None:
            break
        if layer.kernel.extents["c"] != planned[first].layer.kernel.extents["c"]:
            break
        for name, array in layer_constants(layer).items():
            memory = CONSTANTS[name][0]
            count = array.nbytes // config.word_bytes(memory)
            if memory in words:
                words[memory] += count
            elif memory is Memory.TAP:
                taps.append(count)
        if any(count > config.depth(memory) for memory, count in words.items()):
            break
        made.add(layer.output.name)
        end = number + 1
    parted = len(taps) > 1 and sum(taps) > config.tap_depth
    return range(first, end if parted else first)


def chain_cycles(cycles: Sequence[Mapping[Unit, int]], tiles: Sequence[int], dram: int) -> int:
    """Expected cycles of a chain, from those of each layer's units, and in which DRAM works: those
    of the busiest, and of the first tiles of the other layers.

    tiles: of each layer, one after the other along its channels.
    """
    most = [max(each.values()) for each in cycles]
    total = [sum(each[unit] for each in cycles) for unit in UNITS]
    first = [each // count for each, count in zip(most, tiles, strict=True)]
    return int(MARGIN * (max(*total, dram) + sum(first) - first[most.index(max(most))]))
