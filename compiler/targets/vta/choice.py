"""How some layers run, and other ways to run the same layers."""

from collections.abc import Sequence

from dovetail.isa.frozen import frozen

from .block_cascade import Blocks
from .cascade import Sized
from .chain import Chain
from .grains import COARSE, PLANES, Grain
from .tile_estimate import Tile

__all__ = ["Change", "Choice"]


@frozen
class Choice:
    """``count`` layers from ``first`` on: as a cascade, in tiles, or (one layer) all on chip.

    dram: cycles in which DRAM works.
    """

    first: int
    count: int
    cycles: int
    dram: int
    how: Sized | Blocks | Tile | Chain | None
    grain: Grain = COARSE

    @property
    def key(self) -> tuple[object, ...]:
        """Tells ways to run the same layers apart."""
        match self.how:
            case Sized(rows=rows, more=more, turned=turned):
                way: object = rows, more, turned
            case Blocks(size=size):
                way = "blocks", size
            case Tile() as tile:
                way = tuple(tile.sizes.items()), tile.outer, tile.depth, tile.held
            case Chain():
                way = "chain"
            case None:
                way = None
        return self.first, self.count, way, self.grain

    @property
    def apart(self) -> Sequence["Choice"]:
        """The choices of a chain's layers, each with its share of the cycles."""
        if not isinstance(self.how, Chain):
            return (self,)
        shares = [
            [(n + 1) * total // self.count - n * total // self.count for n in range(self.count)]
            for total in (self.cycles, self.dram)
        ]
        numbers = range(self.first, self.first + self.count)
        each = zip(numbers, *shares, strict=True)
        return [Choice(number, 1, cycles, dram, None, PLANES) for number, cycles, dram in each]

    def cost(self, price: float) -> float:
        """Cycles, and ``price`` for each cycle of DRAM, since others might need it."""
        return self.cycles + price * self.dram


@frozen
class Change:
    """``choices`` to be put in place of those for the same layers; each replaces whole choices."""

    choices: tuple[Choice, ...]

    @property
    def first(self) -> int:
        """The first layer."""
        return self.choices[0].first

    @property
    def end(self) -> int:
        """The layer after the last."""
        return self.choices[-1].first + self.choices[-1].count

    @property
    def key(self) -> tuple[object, ...]:
        """Tells changes apart."""
        return tuple(choice.key for choice in self.choices)
