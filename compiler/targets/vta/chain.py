"""Layers that run one by one, all on chip, but overlap.

Each reads no more than the same channels of those before, so it follows them tile by tile while the
other unit goes on.
"""

from collections import Counter
from collections.abc import Container, Mapping, Sequence

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory, Unit

from .block_cascade import is_plain, steps_by
from .constant_loads import CONSTANTS, layer_constants
from .layers.definition import LoweredLayer
from .schedules import AXES
from .stream import StreamedLayer

__all__ = ["UNITS", "Chain", "chain_cycles", "keeps_channels", "shares_taps"]

UNITS = Unit.GEMM, Unit.VECTOR
"""The units that compute."""

MARGIN = 1.1
"""Estimate: units wait for each other's tiles."""


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


def shares_taps(
    first: int, planned: Sequence[StreamedLayer], alone: Container[int], config: HardwareConfig
) -> range:
    """Layers of a chain, from number ``first`` on, whose tiles had better come in turn; perhaps
    none.

    Their taps do not fit in TAP together, but their other constants do.  With tiles in turn, taps
    come in turn too; else the taps of each layer would come after all tiles of the layer before.

    planned: of all layers.  alone: numbers of those that run one by one.
    """
    made, blocks = set[str](), planned[first].layer.kernel.extents["c"]
    words, taps, last = Counter[Memory](), 0, first
    for number in range(first, len(planned)):
        each = planned[number]
        layer, inputs = each.layer, {x.name for x in each.layer.inputs}
        if number not in alone or each.windows or each.tiling.outer != AXES:
            break
        if (number > first and not made & inputs) or not keeps_channels(layer, made):
            break
        if layer.stored is not None or layer.kernel.extents["c"] != blocks:
            break
        for name, array in layer_constants(layer).items():
            memory = CONSTANTS[name][0]
            words[memory] += array.nbytes // config.word_bytes(memory)
        if any(words[memory] > config.depth(memory) for memory in (Memory.PAR, Memory.TAB)):
            break
        made.add(layer.output.name)
        taps, last = taps + ("taps" in layer.constants), number
    parted = taps > 1 and words[Memory.TAP] > config.tap_depth
    return range(first, last + 1 if parted else first)


def chain_cycles(cycles: Sequence[Mapping[Unit, int]], tiles: Sequence[int], dram: int) -> int:
    """Expected cycles of a chain: those of the busiest of its units and DRAM, and the first tiles
    of all layers but the longest.

    cycles: of each layer's units.  tiles: how many each layer has along its channels.  dram: cycles
    in which DRAM works.
    """
    most = [max(each.values()) for each in cycles]
    total = [sum(each[unit] for each in cycles) for unit in UNITS]
    first = [each // count for each, count in zip(most, tiles, strict=True)]
    return int(MARGIN * (max(*total, dram) + sum(first) - first[most.index(max(most))]))
