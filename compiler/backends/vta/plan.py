"""Which activations stay in DRAM, how each layer is tiled, and where in ACT everything lies."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from ...errors import DoesNotFitError
from ...schedule.defaults import Limits, default_schedule
from ...schedule.primitives import Schedule
from ...tensor.lower import Activation, LoweredLayer
from .cascade import Cascade
from .model import unit_cycles
from .place import Item, NoRoomError, activation_items, place
from .rows import RowRing
from .stream import StreamedLayer, TileError, stream_schedule
from .strips import Stripes, plan_cascade, stripes_of

__all__ = ["Plan", "plan_layers"]

MOST_LAYERS = 8
"""Layers of a cascade, at most."""


@dataclass(frozen=True, slots=True)
class Plan:
    """layers: the schedule of each; what it streams is in its windows.

    cascades: those that run strip by strip, by the number of the first.
    places: first ACT word of every activation that is on chip, by name; of the buffers of layer
    (or cascade from layer) ``n`` for the activation ``name``, by ``(n, name)``.
    streamed: names of the activations that are in DRAM.
    """

    layers: tuple[StreamedLayer, ...]
    cascades: Mapping[int, Cascade]
    places: Mapping[str | tuple[int, str], int]
    streamed: frozenset[str]

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """The schedule of each layer."""
        return tuple(layer.schedule for layer in self.layers)


def plan_layers(layers: Sequence[LoweredLayer], source: Activation, config: HardwareConfig) -> Plan:
    """Keep all activations on chip, but for the largest of those that do not fit together.

    Each round moves at least one more away, so this ends.
    Raises DoesNotFitError, naming the layer, when one does not fit even so.
    """
    planner = _Planner(layers, activation_items(layers, source), config)
    gone: frozenset[str] = frozenset()
    while True:
        try:
            return planner.plan(gone)
        except NoRoomError as problem:
            gone = _with_largest(planner.items, gone, problem)


def limits_of(config: HardwareConfig) -> Limits:
    """What a tile may use: one bank of ACC, and half of WGT, so that the next one's are loaded."""
    return Limits(acc_words=config.bank_words(Memory.ACC), wgt_words=config.wgt_depth // 2)


def _constants_fit(layer: LoweredLayer, config: HardwareConfig) -> bool:
    """Whether half of WGT holds the weights of one channel block, and TAP and PAR all of theirs."""
    nothing = np.zeros((1, 0))
    sizes = {
        Memory.WGT: 2 * layer.constants.get("weights", nothing)[0].nbytes,
        Memory.TAP: layer.constants.get("taps", nothing).nbytes,
        Memory.PAR: 2 * layer.constants.get("bias", nothing).nbytes,
    }
    return all(
        size <= config.depth(memory) * config.word_bytes(memory) for memory, size in sizes.items()
    )


def _with_largest(
    items: Sequence[Item],
    streamed: frozenset[str],
    problem: NoRoomError,
) -> frozenset[str]:
    """``streamed`` and the largest activation on chip that is there when ``problem`` arises."""
    there = [
        item
        for item in items
        if item.first <= problem.layer <= item.last and item.activation.name not in streamed
    ]
    if not there:
        raise DoesNotFitError(str(problem))
    return streamed | {max(there, key=lambda item: item.words).activation.name}


class _Planner:
    """Plans for different choices of what is wholly on chip."""

    def __init__(
        self, layers: Sequence[LoweredLayer], items: Sequence[Item], config: HardwareConfig
    ) -> None:
        self.items = items
        self._layers, self._config = layers, config
        self._stripes = [stripes_of(layer, config) for layer in layers]
        self._singles: dict[tuple[int, frozenset[str], int], StreamedLayer | TileError] = {}
        self._last = {item.activation.name: item.last for item in items}
        self._result = layers[-1].output.name

    def plan(self, gone: frozenset[str]) -> Plan:
        """With the activations ``gone`` in DRAM, or on chip a few rows at a time.

        Raises NoRoomError when that does not fit.
        """
        kept = [item for item in self.items if item.activation.name not in gone]
        chosen = self._cheapest(kept, gone)
        planned: list[StreamedLayer] = []
        buffers: list[Item] = []
        streamed: set[str] = set()
        for entry in chosen:
            if isinstance(entry, Cascade):
                numbers = (entry.first, entry.first + len(entry.layers) - 1)
                for name, ring in entry.rings.items():
                    if not ring.kept:
                        buffers.append(_rows_item(ring, numbers, self._stripes))
                        streamed |= {name} if ring.stored or ring.producer is None else set()
                planned += entry.layers
            else:
                number = len(planned)
                buffers += [
                    Item(
                        window.activation, number, number, frozenset(), window.slots * window.words
                    )
                    for window in entry.windows.values()
                ]
                streamed |= entry.windows.keys()
                planned.append(entry)
        cascades = {entry.first: entry for entry in chosen if isinstance(entry, Cascade)}
        kept = [_lengthened(item, cascades.values()) for item in kept]
        names = [layer.kernel.name for layer in self._layers]
        starts = place([*kept, *buffers], names, self._config)
        places: dict[str | tuple[int, str], int] = {
            item.activation.name: start for item, start in zip(kept, starts, strict=False)
        }
        for item, start in zip(buffers, starts[len(kept) :], strict=True):
            places[item.first, item.activation.name] = start
        return Plan(tuple(planned), cascades, places, frozenset(streamed))

    def _cheapest(
        self, kept: Sequence[Item], gone: frozenset[str]
    ) -> list[StreamedLayer | Cascade]:
        """Cut all layers into single ones and cascades, so that the sum of cycles is least."""
        count = len(self._layers)
        costs: list[float] = [0.0, *[float("inf")] * count]
        choices: list[tuple[int, StreamedLayer | Cascade] | None] = [None] * (count + 1)
        problem: TileError | None = None
        for first in range(count):
            if costs[first] == float("inf"):
                continue
            for option, size in self._options(first, kept, gone):
                if isinstance(option, TileError):
                    problem = option
                    continue
                cost = costs[first] + option.cycles
                if cost < costs[first + size]:
                    costs[first + size] = cost
                    choices[first + size] = first, option
            if costs[first + 1 :] == [float("inf")] * (count - first):
                raise NoRoomError(str(problem), first) from None
        found: list[StreamedLayer | Cascade] = []
        end = count
        while end:
            entry = choices[end]
            assert entry is not None
            end = entry[0]
            found.insert(0, entry[1])
        return found

    def _options(
        self, first: int, kept: Sequence[Item], gone: frozenset[str]
    ) -> Iterator[tuple[StreamedLayer | Cascade | TileError, int]]:
        """Ways to run layer ``first``, or it and some that follow; and how many layers that is."""
        yield self._single(first, kept, gone), 1
        group: list[Stripes] = []
        for last in range(first, min(first + MOST_LAYERS, len(self._layers))):
            stripes = self._stripes[last]
            if stripes is None:
                return
            group.append(stripes)
            names = {x.name for each in group for x in (*each.layer.inputs, each.output)}
            rows = {name: self._last[name] > last or name == self._result for name in names & gone}
            taken = sum(item.words for item in kept if item.first <= last and first <= item.last)
            room = self._config.act_depth - taken
            if room <= 0:
                return
            cascade = plan_cascade(group, first, rows, self._config, room)
            if cascade is not None:
                yield cascade, len(group)

    def _single(
        self, number: int, kept: Sequence[Item], gone: frozenset[str]
    ) -> StreamedLayer | TileError:
        layer, config = self._layers[number], self._config
        touched = {x.name: x for x in (*layer.inputs, layer.output) if x.name in gone}
        taken = sum(item.words for item in kept if item.first <= number <= item.last)
        key = number, frozenset(touched), taken
        if key not in self._singles:
            try:
                self._singles[key] = self._planned(layer, touched, config.act_depth - taken)
            except TileError as error:
                self._singles[key] = error
        return self._singles[key]

    def _planned(
        self, layer: LoweredLayer, touched: Mapping[str, Activation], act_words: int
    ) -> StreamedLayer:
        config = self._config
        if not touched and _constants_fit(layer, config):
            schedule = default_schedule(layer.kernel, limits_of(config))
            return StreamedLayer(schedule, {}, (), max(unit_cycles(layer.kernel).values()))
        return stream_schedule(layer.kernel, touched, config, act_words)


def _lengthened(item: Item, cascades: Collection[Cascade]) -> Item:
    """``item`` living from the first to the last layer of a cascade that makes or reads it."""
    first, last = item.first, item.last
    for cascade in cascades:
        begin, end = cascade.first, cascade.first + len(cascade.layers) - 1
        if begin <= item.first <= end:
            first = begin
        if begin <= item.last <= end:
            last = end
    return replace(item, first=first, last=last)


def _rows_item(ring: RowRing, layers: tuple[int, int], stripes: Sequence[Stripes | None]) -> Item:
    first, last = layers
    return Item(ring.activation, first, last, frozenset(), ring.words)
