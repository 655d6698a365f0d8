"""Grains: how fine the instructions of a layer are."""

from dovetail.isa.frozen import frozen

__all__ = [
    *("CHANNELS", "COARSE", "FINER", "GRAINS", "LARGER", "PIXELS", "PLANES", "ROWS", "TILES"),
    "Grain",
]

TILES = 4
"""Tiles a layer is cut into at least, if it can be: the epilogue of one runs under the matrix
core's next.
"""


@frozen
class Grain:
    """How fine instructions are.  A unit holds banks while it works on one, so finer ones let
    others go on; but each costs its latency.

    parts: of what would be one tile by default.  by_rows: tiles have all channels of some rows,
    which suits windows of rows.  by_channels: they may have some channels where a layer has no sums
    too, as those with sums may.  planes: they have all pixels of these channels, if sums fit in a
    bank.  tiles: a layer is cut into at least, if it can be.
    """

    parts: int = 1
    by_rows: bool = False
    by_channels: bool = False
    planes: bool = False
    tiles: int = TILES


COARSE = Grain()
CHANNELS = Grain(by_channels=True)
"""Tiles of some rows of some channels, whatever the layer."""

PLANES = Grain(by_channels=True, planes=True)
"""Tiles of layers that overlap channel by channel."""

PIXELS = Grain(1, by_rows=True)
"""Tiles of some rows, or pixels of a row, of all channels."""

ROWS = Grain(2, by_rows=True)
"""Such tiles, half as large."""

GRAINS = (Grain(2), PIXELS, ROWS, Grain(4))
"""Other grains for layers that are all on chip."""

FINER = (Grain(2), Grain(4))
"""Other grains of cascades."""

LARGER = (Grain(tiles=1), Grain(tiles=2))
"""Grains of layers that are all on chip, for programs whose instructions are too many: each is read
from DRAM.
"""
