"""Refusing layers that would be cut into unreasonably many tiles."""

from collections.abc import Sequence
from math import prod

from dovetail.isa.config import HardwareConfig

from ...errors import DoesNotFitError
from .stream import StreamedLayer

__all__ = ["MOST_TILES", "require_size"]

MOST_TILES = 400_000
"""Tiles of all layers; each is some instructions.  As many take about a quarter of an hour to
compile.
"""


def require_size(layers: Sequence[StreamedLayer], config: HardwareConfig) -> None:
    """Raises DoesNotFitError, naming the layer with most tiles, when there are too many."""
    counts = [_tiles(layer) for layer in layers]
    if sum(counts) <= MOST_TILES:
        return
    most = max(range(len(counts)), key=counts.__getitem__)
    depths = f"ACT {config.act_depth:,} words, WGT {config.wgt_depth:,} tiles"
    raise DoesNotFitError(
        f"layer {layers[most].layer.name!r}: {counts[most]:,} tiles, and {sum(counts):,} with "
        f"those of all other layers; at most {MOST_TILES:,} are compiled; configuration "
        f"{config.name!r} ({depths}, ACC {config.acc_depth:,} words) holds too little of such a "
        "layer at a time; use one with deeper memories or larger blocks, or a smaller input"
    )


def _tiles(layer: StreamedLayer) -> int:
    extents = layer.layer.kernel.extents
    return prod(
        -(-extents[axis] // size) for axis, size in layer.tiling.sizes.items() if axis in extents
    )
