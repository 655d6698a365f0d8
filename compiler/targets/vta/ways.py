"""Ways to run some layers: all on chip, in tiles, in strips, or some channel blocks at a time."""

from collections.abc import Callable, Iterator, Sequence

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen, replace

from ...options import Overlap
from .block_cascade import MEMBERS, BlockCascade, Blocks, block_cascade, block_sizes
from .blockwise import blockwise
from .cascade import Cascade, Sized
from .cascade_sizes import CascadeSizes
from .chain import Chain, chain_cycles, keeps_channels
from .choice import Choice
from .finer import finer_tiling
from .grains import CHANNELS, COARSE, FINER, GRAINS, LARGER, PLANES, Grain
from .items import Item
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .model import unit_cycles
from .room import Room
from .schedules import Tiling, has_own_taps
from .stream import StreamedLayer, TileError, best_tile, stream_tiles, streamed_layer
from .strips import scheduled_cascade
from .tile_estimate import Tile
from .tile_limits import layer_cycles, limits_of
from .windows import SLOTS

__all__ = ["MOST_LAYERS", "LayerWays"]

MOST_LAYERS, NARROW = 8, 4
"""Layers of a cascade, at most; and of one whose buffers are turned for want of room."""


@frozen
class _Options:
    """Ways to run a layer, alone or with those that follow it.

    problem: why it cannot run alone, if so.  costs: for each way, the number of the layer behind
    it, and its cost.
    """

    options: list[Choice]
    problem: TileError | None
    costs: tuple[tuple[int, float], ...]


class LayerWays:
    """Ways to run layers, for any choice of what is wholly on chip; remembers what it tried."""

    def __init__(
        self,
        layers: Sequence[LoweredLayer],
        items: Sequence[Item],
        results: frozenset[str],
        config: HardwareConfig,
        overlap: Overlap,
        *,
        edges: bool,
        sizes: CascadeSizes,
        tiles: dict[tuple[object, ...], list[Tile]],
        look: Callable[[str], None] = lambda where: None,
    ) -> None:
        """``results``: names of the activations that are stored in any case.

        edges: whether to count waits between layers: the time in which a layer waits for the data
        of the one before, and a cascade for constants that come again and for the rows of low
        images.  Layers that are all on chip then run channel by channel, so that they overlap, even
        if TAP has no room for all their taps.

        sizes, tiles: of cascades and of single layers, shared by all choosers of the same layers.
        look: called at each layer.
        """
        self.layers, self.items, self.config = layers, items, config
        self._depth = SLOTS if overlap in (Overlap.TILES, Overlap.LAYERS) else 1
        self._most = MOST_LAYERS if overlap is Overlap.LAYERS else 0
        self._look = look
        self._names = [frozenset(x.name for x in (*layer.inputs, layer.output)) for layer in layers]
        self._last = {item.activation.name: item.last for item in items}
        self._results = results
        self._late = [
            _late(layers, number) if edges else frozenset() for number in range(len(layers))
        ]
        self._tiles, self._sizes, self._waits = tiles, sizes, edges
        self._best: dict[tuple[int, int, frozenset[str], int, float], Choice | None] = {}
        self._found: dict[tuple[object, ...], _Options] = {}
        self._groups: dict[tuple[int, int], frozenset[str]] = {}
        self._blocks: dict[tuple[int, int, frozenset[str]], list[Blocks]] = {}
        self._built: dict[tuple[object, ...], StreamedLayer | Cascade | BlockCascade] = {}
        self.parts_taps = [has_own_taps(layer.kernel, config.tap_depth) for layer in layers]
        """Layers whose taps come block by block, because TAP has no room for all."""
        self._whole = [
            None if parts and not edges else layer_cycles(layer, config)
            for layer, parts in zip(layers, self.parts_taps, strict=True)
        ]
        self._tiled: dict[int, int] = {}
        self._units = [unit_cycles(layer.kernel, config) for layer in layers]

    def at(
        self, first: int, room: Room, gone: frozenset[str], price: float
    ) -> tuple[list[Choice], TileError | None]:
        """The best way to run each number of layers from ``first`` on, and why ``first`` cannot run
        alone, if so.
        """
        found = self._tried(first, room, gone, price)
        return found.options, found.problem

    def costs(
        self, first: int, room: Room, gone: frozenset[str], price: float
    ) -> Sequence[tuple[int, float]]:
        """For each of those ways, the number of the layer behind it, and its cost."""
        return self._tried(first, room, gone, price).costs

    def _tried(self, first: int, room: Room, gone: frozenset[str], price: float) -> _Options:
        end = min(first + max(self._most, *MEMBERS), len(self.layers))
        key = first, self._names_of(first, end - 1) & gone, room.each(first, end), price
        found = self._found.get(key)
        if found is None:
            options, problem = self._at(first, room, gone, price)
            costs = tuple((first + each.count, each.cost(price)) for each in options)
            found = self._found[key] = _Options(options, problem, costs)
        return found

    def _at(
        self, first: int, room: Room, gone: frozenset[str], price: float
    ) -> tuple[list[Choice], TileError | None]:
        """As ``at``, for the first time."""
        self._look(f"plan, layer {self.layers[first].name!r}")
        problem: TileError | None = None
        try:
            options = [self._single(first, room.of(first, first), gone, price)]
        except TileError as error:
            options, problem = [], error
        options += self._chains(first, gone)
        options += self._cascades(first, room, gone, price)
        options += self._block_cascades(first, room, gone, price)
        return options, problem

    def all(self, first: int, count: int, gone: frozenset[str]) -> Iterator[Choice]:
        """Every way to run ``count`` layers from ``first`` on that is worth it, room or not.

        gone: activations that are not wholly on chip.
        """
        last = first + count - 1
        whole = self._whole[first]
        if count == 1 and not self._names[first] & gone and whole is not None:
            plain = self.plain(first) if self._waits else COARSE
            for grain in (plain, *(self.grained(first, grain) for grain in GRAINS)):
                yield Choice(first, 1, *whole, None, grain)
        elif count == 1:
            for depth in sorted({self._depth, 1}, reverse=True):
                for tile in self._tiles_of(first, gone, depth):
                    yield Choice(first, 1, tile.cycles, tile.dram, tile)
        stripes = self._sizes.stripes[first : last + 1]
        if None not in stripes and len(stripes) == count <= self._most:
            touched = self._names_of(first, last) & gone
            sizes = self._sizes.sizes(first, last, touched, waits=self._waits)
            for sized in (*sizes, *self._narrow(first, last, touched)):
                for grain in (COARSE, *FINER):
                    yield Choice(first, count, sized.cycles, sized.dram, sized, grain)
        for blocks in self._blocks_of(first, count, gone) if count in MEMBERS else ():
            yield Choice(first, count, blocks.cycles, blocks.dram, blocks)

    def turned(self, choice: Choice, gone: frozenset[str]) -> Choice | None:
        """A cascade with turned buffers; None where none would be."""
        if not isinstance(choice.how, Sized):
            return None
        sized = self._sizes.turned(choice.first, choice.first + choice.count - 1, gone)
        if sized is None:
            return None
        return replace(choice, cycles=sized.cycles, dram=sized.dram, how=sized)

    def planes(self, number: int, gone: frozenset[str]) -> Iterator[Choice]:
        """The way to run a layer that is all on chip with all pixels of some channels at a time."""
        whole = self.whole(number, gone)
        if whole is not None:
            yield Choice(number, 1, *whole, None, PLANES)

    def larger(self, number: int, gone: frozenset[str]) -> Iterator[Choice]:
        """Ways to run a layer that is all on chip in fewer instructions."""
        whole = self.whole(number, gone)
        if whole is not None:
            for grain in LARGER:
                yield Choice(number, 1, *whole, None, grain)

    def grained(self, number: int, grain: Grain) -> Grain:
        """``grain`` for a layer that is all on chip: by channels too, where waits count."""
        if grain == COARSE:
            return PLANES if self._waits else COARSE
        by_channels = self._waits and not grain.by_rows and self.plain(number).by_channels
        return replace(grain, by_channels=by_channels)

    def plain(self, number: int) -> Grain:
        """The grain of a layer that is all on chip in tiles of some rows of some channels."""
        return COARSE if "acc" in self.layers[number].kernel.refs else CHANNELS

    def build(self, choice: Choice, gone: frozenset[str]) -> StreamedLayer | Cascade | BlockCascade:
        """The schedules of a choice for ``gone``."""
        names = self._names_of(choice.first, choice.first + choice.count - 1)
        key = choice.first, choice.count, names & gone, id(choice.how), choice.grain
        if key not in self._built:
            self._built[key] = self._scheduled(choice, gone)
        return self._built[key]

    def _scheduled(
        self, choice: Choice, gone: frozenset[str]
    ) -> StreamedLayer | Cascade | BlockCascade:
        layer, config, how = self.layers[choice.first], self.config, choice.how
        assert not isinstance(how, Chain), "plans have a choice for each of its layers"
        match how:
            case None:
                return self._plain(choice.first, choice.grain)
            case Tile() as tile:
                return streamed_layer(layer, _touched(layer, gone), tile)
            case Blocks() as blocks:
                members = self.layers[choice.first : choice.first + choice.count]
                return block_cascade(members, choice.first, blocks, gone)
            case Sized() as sized:
                stripes = self._sizes.stripes[choice.first : choice.first + choice.count]
                found = [each for each in stripes if each is not None]
                return scheduled_cascade(found, choice.first, sized, config, choice.grain)

    def _single(self, number: int, room: int, gone: frozenset[str], price: float) -> Choice:
        whole = self._whole[number]
        touched = self._names[number] & gone
        if not touched and whole is not None:
            return Choice(number, 1, *whole, None, self.grained(number, COARSE))
        key = number, number, touched, room, price
        found = self._best.get(key)
        if found is None:
            tile = self._tile(number, room, gone, price)
            self._best[key] = found = Choice(number, 1, tile.cycles, tile.dram, tile)
        return found

    def _tile(self, number: int, room: int, gone: frozenset[str], price: float) -> Tile:
        """The best tile in ``room``, with one buffer where two leave no room for a better one.

        Raises TileError when none fits.
        """
        kernel, tiles = self.layers[number].kernel, self._tiles_of(number, gone, self._depth)
        try:
            tile = best_tile(kernel, tiles, room, price)
        except TileError:
            # Rather one buffer than none: LOAD waits for the tile before.
            return best_tile(kernel, self._tiles_of(number, gone, 1), room, price)
        if tile.dram > min(each.dram for each in tiles):
            alone = best_tile(kernel, self._tiles_of(number, gone, 1), room, price)
            tile = min(tile, alone, key=lambda each: each.cycles + price * each.dram)
        return tile

    def _tiles_of(self, number: int, gone: frozenset[str], depth: int) -> list[Tile]:
        touched = self._names[number] & gone
        late = self._late[number] & touched
        key = number, touched, depth, late
        if key not in self._tiles:
            layer = self.layers[number]
            activations = _touched(layer, gone)
            self._tiles[key] = stream_tiles(layer.kernel, activations, self.config, depth, late)
        return self._tiles[key]

    def _chains(self, first: int, gone: frozenset[str]) -> Iterator[Choice]:
        """Layer ``first`` and those that follow it as chains, if waits between layers count."""
        made: set[str] = set()
        moved = 0
        most = self._most if self._waits else 0
        for last in range(first, min(first + most, len(self.layers))):
            layer, whole = self.layers[last], self.whole(last, gone)
            if whole is None or not keeps_channels(layer, made):
                return
            made.add(layer.output.name)
            moved += whole[1]
            if last > first:
                members = range(first, last + 1)
                tiles = [self._channel_tiles(number) for number in members]
                cycles = chain_cycles(self._units[first : last + 1], tiles, moved)
                yield Choice(first, len(members), cycles, moved, Chain())

    def _channel_tiles(self, number: int) -> int:
        """Tiles along the channels of a layer that is all on chip."""
        if number not in self._tiled:
            blocks = self.layers[number].kernel.extents["c"]
            self._tiled[number] = blocks // self._tiling(number, PLANES).sizes["c"]
        return self._tiled[number]

    def _cascades(
        self, first: int, room: Room, gone: frozenset[str], price: float
    ) -> Iterator[Choice]:
        """Layer ``first`` and up to all that follow, as cascades that fit."""
        for last in range(first, min(first + self._most, len(self.layers))):
            left = room.of(first, last)
            if self._sizes.stripes[last] is None or left <= 0:
                return
            key = -1 - first, last, self._names_of(first, last) & gone, left, price
            if key not in self._best:
                sizes = self._sizes.sizes(first, last, key[2], waits=self._waits)
                if all(each.words > left for each in sizes):
                    sizes = self._narrow(first, last, key[2])
                self._best[key] = min(
                    (
                        Choice(first, last + 1 - first, sized.cycles, sized.dram, sized)
                        for sized in sizes
                        if sized.words <= left
                    ),
                    key=lambda choice: choice.cost(price),
                    default=None,
                )
            found = self._best[key]
            if found is not None:
                yield found

    def _narrow(self, first: int, last: int, gone: frozenset[str]) -> list[Sized]:
        """Cascades whose buffers are turned for want of room, if waits between layers count."""
        few = self._waits and last - first < NARROW
        return self._sizes.narrow(first, last, gone) if few else []

    def _block_cascades(
        self, first: int, room: Room, gone: frozenset[str], price: float
    ) -> Iterator[Choice]:
        """Layer ``first`` and the next one or two, some blocks at a time, in the best way of each
        that fits.
        """
        for count in MEMBERS:
            ways = self._blocks_of(first, count, gone)
            left = room.of(first, first + count - 1) if ways else 0
            fitting = [
                Choice(first, count, way.cycles, way.dram, way) for way in ways if way.words <= left
            ]
            if fitting:
                yield min(fitting, key=lambda choice: choice.cost(price))

    def _blocks_of(self, first: int, count: int, gone: frozenset[str]) -> list[Blocks]:
        """Ways to run ``count`` layers from ``first`` on some blocks at a time.

        Two layers run so only where what is between them does not fit, and the layer behind them
        cannot be the third.
        """
        last = first + count - 1
        if not self._most or last >= len(self.layers):
            return []
        key = first, last, self._names_of(first, last) & gone
        if key not in self._blocks:
            members = self.layers[first : last + 1]
            between = {layer.output.name for layer in members[:-1]}
            own = all(self._last[x] <= last and x not in self._results for x in between)
            suits = own and key[-1] <= between
            if count == min(MEMBERS):
                read_later = self._last[members[-1].output.name] > last + 1
                three = self.layers[first : last + 2]
                suits = suits and bool(key[-1])
                suits = suits and (read_later or not block_sizes(three, self.config))
            else:
                suits &= not self._hides_dense(first)
            self._blocks[key] = block_sizes(members, self.config) if suits else []
        return self._blocks[key]

    def _hides_dense(self, first: int) -> bool:
        """True if layer ``first`` is busy long enough for the weights of a dense layer to come."""
        members = range(first, first + max(MEMBERS))
        if any(self._whole[number] is None for number in members):
            return False
        planned = [self._plain(number, COARSE) for number in members]
        return blockwise(first, planned, self.config) is not None

    def _plain(self, number: int, grain: Grain) -> StreamedLayer:
        """A layer that is all on chip."""
        return StreamedLayer(self.layers[number], self._tiling(number, grain), {})

    def _tiling(self, number: int, grain: Grain) -> Tiling:
        """The tiles of a layer that is all on chip."""
        limits = limits_of(self.config)
        return finer_tiling(self.layers, number, self._units, limits, self._depth, grain)

    def _names_of(self, first: int, last: int) -> frozenset[str]:
        """Activations that layers from ``first`` to ``last`` touch."""
        if (first, last) not in self._groups:
            before = self._names_of(first, last - 1) if last > first else frozenset()
            self._groups[first, last] = before | self._names[last]
        return self._groups[first, last]

    def whole(self, number: int, gone: frozenset[str]) -> tuple[int, int] | None:
        """Cycles of a layer that is all on chip, and those of DRAM; None where it is not."""
        return None if self._names[number] & gone else self._whole[number]


def _late(layers: Sequence[LoweredLayer], number: int) -> frozenset[str]:
    """Inputs of a layer that the one before makes; its output, if the next one reads it."""
    layer, found = layers[number], set[str]()
    if number:
        found |= {layers[number - 1].output.name} & {x.name for x in layer.inputs}
    if number + 1 < len(layers):
        found |= {layer.output.name} & {x.name for x in layers[number + 1].inputs}
    return frozenset(found)


def _touched(layer: LoweredLayer, gone: frozenset[str]) -> dict[str, Activation]:
    return {x.name: x.all_channels for x in (*layer.inputs, layer.output) if x.name in gone}
