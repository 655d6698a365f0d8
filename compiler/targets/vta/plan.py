"""A plan, and the places in ACT of everything in it."""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen, replace
from dovetail.isa.memories import Unit

from ...options import Overlap
from .bank_waits import bank_waits, in_parts
from .block_cascade import BlockCascade
from .blockwise import GROUP, Blockwise, blockwise
from .cascade import Cascade
from .chain import shares_taps
from .choice import Choice
from .items import Item
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .place import NoRoomError, place
from .placing import PLAIN, Placing
from .stream import StreamedLayer

__all__ = ["Ends", "Placer", "Plan", "left_out"]


@frozen
class Ends:
    """Tensors that a program begins and ends with.

    sources: activations that are in DRAM before it.  results: names of those that are after it:
    outputs, and what layers read as weights.
    constants: bytes of those sources that are known, in blocks.
    inside: of activations that are parts of others in DRAM, the whole and the word that is the
    first.
    read: of results that only layers read, as weights: the blocks of channels that they read.
    """

    sources: tuple[Activation, ...]
    results: frozenset[str]
    constants: Mapping[str, NDArray[np.int8]] = field(default_factory=dict)
    inside: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    read: Mapping[str, frozenset[int]] = field(default_factory=dict)


@frozen
class Plan:
    """layers: the tiles of each; what it streams is in its windows.

    cascades: those that run strip by strip, or some blocks at a time, by the number of the first.
    blockwise: those that run block by block, by the number of the first.  chains: of some, the
    layers whose tiles come in turn.
    places: first ACT word of every activation that is on chip, by name; of the buffers of layer
    (or cascade from layer) ``n`` for the activation ``name``, by ``(n, name)``.
    streamed: names of the activations that are in DRAM.
    choices: how the layers run.  gone: activations that are not wholly on chip.  waits: cycles that
    units are expected to wait for each other's banks, by layer.  placed: what has words of ACT, and
    its first one.  placing: what decided between places.
    """

    layers: tuple[StreamedLayer, ...]
    cascades: Mapping[int, Cascade | BlockCascade]
    places: Mapping[str | tuple[int, str], int]
    blockwise: Mapping[int, Blockwise]
    chains: Mapping[int, range]
    streamed: frozenset[str]
    choices: tuple[Choice, ...]
    gone: frozenset[str]
    waits: Mapping[int, int]
    placed: tuple[tuple[Item, int], ...]
    placing: Placing

    @property
    def key(self) -> tuple[object, ...]:
        """Tells plans of the same layers apart."""
        return self.gone, tuple(choice.key for choice in self.choices), self.placing

    @property
    def wait_cycles(self) -> int:
        """Cycles that all layers wait."""
        return sum(self.waits.values())

    @property
    def cycles(self) -> int:
        """Cycles that the layers take, one after the other."""
        return sum(choice.cycles for choice in self.choices)

    @property
    def dram(self) -> int:
        """Cycles in which DRAM works."""
        return sum(choice.dram for choice in self.choices)

    def cost(self, price: float) -> float:
        """Cycles, with those of waiting, and ``price`` for each of DRAM's."""
        return self.cycles + self.wait_cycles + price * self.dram


@frozen
class Placer:
    """Gives what is on chip its place in ACT, and so makes choices a plan.

    layers: of the program.  items: their activations, as if all were on chip.
    """

    layers: Sequence[LoweredLayer]
    items: Sequence[Item]
    config: HardwareConfig
    overlap: Overlap

    def plan(
        self,
        choices: Sequence[Choice],
        built: Sequence[StreamedLayer | Cascade | BlockCascade],
        gone: frozenset[str],
        placing: Placing = PLAIN,
    ) -> Plan:
        """The plan of ``choices``, which are all layers, and give ``built``.

        Raises NoRoomError when that does not fit.
        """
        planned: list[StreamedLayer] = []
        buffers: list[Item] = []
        streamed: set[str] = set()
        named = {item.activation.name: item for item in self.items}
        for entry in built:
            first = len(planned)
            if isinstance(entry, Cascade):
                planned += entry.layers
                for name, ring in entry.rings.items():
                    if not ring.kept:
                        end = len(planned)
                        buffers.append(_buffer(named, ring.activation, first, end, ring.words))
                        streamed |= {name} if ring.stored or not ring.producers else set()
            elif isinstance(entry, BlockCascade):
                planned += entry.layers
                buffers += [
                    _buffer(named, ring.activation, first, len(planned), ring.words)
                    for ring in entry.rings.values()
                    if not ring.kept
                ]
            else:
                planned.append(entry)
                streamed |= entry.windows.keys()
                buffers += [
                    _buffer(named, each.activation, first, first + 1, each.slots * each.words)
                    for each in entry.windows.values()
                ]
        cascades = {each.first: each for each in built if not isinstance(each, StreamedLayer)}
        kept = [item for item in self.items if item.activation.name not in gone]
        together = [range(each.first, each.first + len(each.layers)) for each in cascades.values()]
        kept = [_lengthened(item, together) for item in kept]
        alone = {choice.first for choice in choices if choice.count == 1}
        blocks, items, starts = self._placed(planned, alone, [*kept, *buffers], placing)
        chains, items, starts = self._in_turn(
            planned, alone - _members(blocks), items, starts, placing
        )
        places: dict[str | tuple[int, str], int] = {
            item.activation.name: start for item, start in zip(kept, starts, strict=False)
        }
        placed = list(zip(buffers, starts[len(kept) :], strict=True))
        for item, start in placed:
            places[item.first, item.activation.name] = start
        planned = in_parts(self.layers, choices, planned, placed, self.config, _members(blocks))
        return Plan(
            tuple(planned),
            cascades,
            places,
            blocks,
            {each.start: each for each in chains},
            frozenset(streamed),
            tuple(choices),
            gone,
            bank_waits(self.layers, choices, planned, placed, self.config),
            tuple(zip(items, starts, strict=True)),
            placing,
        )

    def _placed(
        self,
        planned: list[StreamedLayer],
        alone: Set[int],
        items: Sequence[Item],
        placing: Placing,
    ) -> tuple[dict[int, Blockwise], Sequence[Item], list[int]]:
        """Layers that run block by block, whose plans take the place of those in ``planned``; and
        ``items``, as long as they then live, and their first words.

        alone: numbers of the layers that are not in a cascade.
        Raises NoRoomError when the items do not fit.
        """
        names = [layer.name for layer in self.layers]
        groups: dict[int, Blockwise] = {}
        starts: list[int] | None = None
        first = 0 if self.overlap is Overlap.LAYERS else len(planned)
        while first + GROUP <= len(planned):
            members = range(first, first + GROUP)
            first += 1
            if not alone >= set(members):
                continue
            some = planned[members.start : members.stop]
            found = blockwise(members.start, some, self.config, eager=placing.eager)
            if found is None:
                continue
            longer = [_lengthened(item, [members]) for item in items]
            try:
                starts = place(longer, names, self.config, placing)
            except NoRoomError:
                continue
            items, first = longer, members.stop
            groups[members.start], planned[members.start : members.stop] = found
        return groups, items, starts or place(items, names, self.config, placing)

    def _in_turn(
        self,
        planned: Sequence[StreamedLayer],
        alone: Set[int],
        items: Sequence[Item],
        starts: list[int],
        placing: Placing,
    ) -> tuple[list[range], Sequence[Item], list[int]]:
        """Chains whose tiles come in turn, if there is room for all that they touch at a time; and
        ``items``, as long as they then live, and their first words.

        alone, items: as of ``_placed``.  starts: their first words without chains.
        """
        chains: list[range] = []
        first = 0 if self.overlap is Overlap.LAYERS else len(planned)
        while first < len(planned):
            found = shares_taps(first, planned, alone, self.config)
            chains += [found] if found else []
            first = max(found.stop, first + 1)
        longer = [_lengthened(item, chains) for item in items]
        if longer == list(items):
            return chains, items, starts
        names = [layer.name for layer in self.layers]
        try:
            return chains, longer, place(longer, names, self.config, placing)
        except NoRoomError:
            return [], items, starts


def left_out(plan: Plan, other: Plan) -> int:
    """Estimate: instructions of GEMM and VECTOR that ``other`` has less than ``plan``."""
    return sum(
        len(one.layer.kernel.nests) * (one.tiles - another.tiles)
        for one, another in zip(plan.layers, other.layers, strict=True)
        if one.tiling.sizes != another.tiling.sizes
    )


def _buffer(
    items: Mapping[str, Item], activation: Activation, first: int, end: int, words: int
) -> Item:
    """Words for some of ``activation`` while the layers from ``first`` to before ``end`` run.

    These work at the same time.  items: whole activations, by name.
    """
    whole, within = items[activation.name], range(first, end)
    readers = {(first, unit) for layer, unit in whole.readers if layer in within}
    writers = {(first, unit) for layer, unit in whole.writers if layer in within}
    if any(layer not in within for layer, _ in whole.readers) and writers:
        readers.add((first, Unit.STORE))
    if not writers:
        writers.add((first, Unit.LOAD))
    summed = frozenset(first for layer in whole.summed if layer in within)
    return Item(activation, first, end - 1, frozenset(readers), words, frozenset(writers), summed)


def _members(groups: Iterable[int]) -> frozenset[int]:
    """The layers of groups that run block by block, from the numbers of the first ones."""
    return frozenset(first + n for first in groups for n in range(GROUP))


def _lengthened(item: Item, groups: Iterable[range]) -> Item:
    """``item`` living from the first to the last layer of a group that makes or reads it."""
    first, last = item.first, item.last
    for group in groups:
        if item.first in group:
            first = group.start
        if item.last in group:
            last = group.stop - 1
    return replace(item, first=first, last=last)
