"""Layers that run one by one, all on chip, but overlap.

Each reads no more than the same channels of those before, so it follows them tile by tile while the
other unit goes on.
"""

from collections.abc import Container, Mapping, Sequence

from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Unit

from .block_cascade import is_plain, steps_by
from .layers.definition import LoweredLayer

__all__ = ["UNITS", "Chain", "chain_cycles", "keeps_channels"]

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


def chain_cycles(cycles: Sequence[Mapping[Unit, int]], tiles: Sequence[int], dram: int) -> int:
    """Expected cycles of a chain, from those of each layer's units, and in which DRAM works: those
    of the busiest, and of the first tiles of the other layers.

    tiles: of each layer, one after the other along its channels.
    """
    most = [max(each.values()) for each in cycles]
    total = [sum(each[unit] for each in cycles) for unit in UNITS]
    first = [each // count for each, count in zip(most, tiles, strict=True)]
    return int(MARGIN * (max(*total, dram) + sum(first) - first[most.index(max(most))]))
