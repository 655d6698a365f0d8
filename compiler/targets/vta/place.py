"""Placing activations in ACT by liveness, and rings for what is loaded once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory, Unit

from ...errors import DoesNotFitError
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .model import unit_of

__all__ = ["Grant", "Item", "NoRoomError", "Ring", "activation_items", "place"]

NEAR = 2
"""Layers this far apart, or nearer, may run at the same time."""


class NoRoomError(DoesNotFitError):
    """ACT is too small for what is there while layer ``layer`` runs."""

    def __init__(self, message: str, layer: int) -> None:
        super().__init__(message)
        self.layer = layer


@dataclass(frozen=True, slots=True)
class Item:
    """Words of ACT for an activation, from layer ``first`` (which makes it) to layer ``last``.

    readers, writers: layer and unit of each that reads or writes it.
    """

    activation: Activation
    first: int
    last: int
    readers: frozenset[tuple[int, Unit]]
    words: int
    writers: frozenset[tuple[int, Unit]] = frozenset()

    def lives_with(self, other: "Item") -> bool:
        """Whether both are there at one time."""
        return self.first <= other.last and other.first <= self.last

    def rivals(self, other: "Item") -> bool:
        """Whether two units may want to read both, or to write both, at one time."""
        return _meet(self.readers, other.readers) or _meet(self.writers, other.writers)


@lru_cache(maxsize=1 << 16)
def _meet(some: frozenset[tuple[int, Unit]], others: frozenset[tuple[int, Unit]]) -> bool:
    """Whether different units of layers near each other are among both."""
    return any(
        unit is not other_unit and abs(layer - other_layer) <= NEAR
        for (layer, unit), (other_layer, other_unit) in product(some, others)
    )


@dataclass(frozen=True, slots=True)
class _Place:
    item: Item
    start: int

    @property
    def end(self) -> int:
        """The word after it."""
        return self.start + self.item.words

    def banks(self, config: HardwareConfig) -> int:
        """The banks it lies in, one bit each."""
        size = config.bank_words(Memory.ACT)
        return (2 << (self.end - 1) // size) - (1 << self.start // size)


def activation_items(layers: Sequence[LoweredLayer], sources: Sequence[Activation]) -> list[Item]:
    """Every activation, living from the layer that makes it to the last that reads it; of
    ``sources``, those that layers read, from the layer before the first that does.
    """
    readers: dict[str, set[tuple[int, Unit]]] = {}
    for number, layer in enumerate(layers):
        for activation in layer.inputs:
            units = {
                unit_of(nest)
                for nest in layer.kernel.nests
                if any(ref.buffer.name == activation.name for ref in nest.refs[1:])
            }
            entry = readers.setdefault(activation.name, set())
            entry |= {(number, unit) for unit in units or {Unit.VECTOR}}
    given = [each for each in sources if each.name in readers]
    begins = {each.name: min(n for n, _ in readers[each.name]) - 1 for each in given}
    made = [(each, begins[each.name]) for each in given]
    for number, layer in enumerate(layers):
        # Of the layers that make parts of an activation, the first counts.
        if all(other.name != layer.output.name for other, _ in made):
            made.append((layer.output.whole, number))
    ends: dict[str, int] = {}
    for number, layer in enumerate(layers):
        for activation in (*layer.inputs, layer.output):
            ends[activation.name] = number
    return [
        Item(
            activation,
            first,
            ends.get(activation.name, first),
            frozenset(readers.get(activation.name, ())),
            activation.words,
            frozenset({(first, Unit.LOAD if activation.name in begins else Unit.VECTOR)}),
        )
        for activation, first in made
    ]


def place(items: Sequence[Item], layers: Sequence[str], config: HardwareConfig) -> list[int]:
    """First ACT word of every item; two that live at once never overlap.

    Where there is room, items that different units read (or write) at the same time lie in
    different banks, and new ones where nothing was for longest, so that their layer need not wait.
    Where there is none, they are packed. layers: their names.  Raises NoRoomError, naming the
    layer, when there is no room even so.
    """
    largest = sorted(range(len(items)), key=lambda n: -items[n].words)
    for both_ends, order in product((False, True), (range(len(items)), largest)):
        placed = _spread([items[n] for n in order], config, both_ends=both_ends)
        if placed is not None:
            found = dict(zip(order, placed, strict=True))
            return [found[n].start for n in range(len(items))]
    return _pack(items, layers, config)


def _spread(
    items: Sequence[Item], config: HardwareConfig, *, both_ends: bool
) -> list[_Place] | None:
    """Each item at its best place beside those before it; None when one finds no place.

    Where one finds none, those that live with it are packed: each at its lowest place, or, from
    ``both_ends``, at the better of its lowest and its highest.
    """
    packed: set[int] = set()
    placed: list[_Place] = []
    while len(placed) < len(items):
        item = items[len(placed)]
        rooms = list(_room(item, placed, config))
        if rooms and len(placed) in packed:
            high = max(_room(item, placed, config, ends=True)) if both_ends else min(rooms)
            rooms = [min(rooms), high]
        rivals = [place.banks(config) for place in placed if place.item.rivals(item)]
        spans = [(place.start, place.end, place.item.last) for place in placed]
        costs = ((_cost(item, start, spans, rivals, config), start) for start in rooms)
        start = min(costs, default=(None, None))[1]
        if start is not None:
            placed.append(_Place(item, start))
            continue
        more = {n for n, other in enumerate(items) if other.lives_with(item)} - packed
        if not more:
            return None
        packed |= more
        # Those before the first of them stay where they are.
        del placed[min(more) :]
    return placed


def _room(
    item: Item, placed: Sequence[_Place], config: HardwareConfig, *, ends: bool = False
) -> Iterator[int]:
    """Starts with nothing in the way that lives with ``item``: of banks, and after others; with
    ``ends``, those before others, and at the end of ACT.
    """
    busy = [place for place in placed if place.item.lives_with(item)]
    starts = {place.end for place in placed}
    starts |= set(range(0, config.act_depth, config.bank_words(Memory.ACT)))
    if ends:
        starts = {place.start - item.words for place in busy} | {config.act_depth - item.words}
    for start in starts:
        end = start + item.words
        if (
            start >= 0
            and end <= config.act_depth
            and all(p.end <= start or end <= p.start for p in busy)
        ):
            yield start


def _cost(
    item: Item,
    start: int,
    placed: Sequence[tuple[int, int, int]],
    rivals: Sequence[int],
    config: HardwareConfig,
) -> tuple[int, int]:
    """Banks shared with those of ``rivals``; then how lately something that lay there was read.

    placed: first word, the word after the last, and the last layer that reads it.
    """
    here = _Place(item, start)
    end, banks = here.end, here.banks(config)
    lately = max(
        (last for first, after, last in placed if first < end and start < after),
        default=-NEAR,
    )
    shared = sum((each & banks).bit_count() for each in rivals)
    return shared, max(lately, -NEAR)


def _pack(items: Sequence[Item], layers: Sequence[str], config: HardwareConfig) -> list[int]:
    """Each item at the lowest place, in the order they are given, or else the largest first.

    Raises NoRoomError for the first that finds none in the order they are given.
    """
    failed: Item | None = None
    taken = 0
    for order in (items, sorted(items, key=lambda item: -item.words)):
        placed: list[_Place] = []
        for item in order:
            start = min(_room(item, placed, config), default=None)
            if start is None:
                busy = [place.item for place in placed if place.item.lives_with(item)]
                if failed is None:
                    failed, taken = item, sum(other.words for other in busy)
                break
            placed.append(_Place(item, start))
        else:
            starts = {id(place.item): place.start for place in placed}
            return [starts[id(item)] for item in items]
    assert failed is not None
    name = layers[failed.first] if failed.first >= 0 else failed.activation.name
    raise NoRoomError(
        f"layer {name!r}: act scratchpad: {failed.words} words required beside {taken} in use, "
        f"{config.act_depth} available; use a configuration with a deeper ACT, or a smaller input",
        failed.first,
    )


@dataclass(frozen=True, slots=True)
class Grant:
    """Words that a ring gave out: the first, and how many it had given out before."""

    start: int
    before: int


class Ring:
    """Space of a memory given out in turn; addresses wrap, as the hardware's do."""

    def __init__(self, config: HardwareConfig, memory: Memory) -> None:
        self._memory, self._depth = memory, config.depth(memory)
        self._given = 0

    def take(self, words: int, layer: str) -> Grant:
        """The next ``words``.

        Raises DoesNotFitError when the memory has fewer in all.
        """
        if words > self._depth:
            raise DoesNotFitError(
                f"layer {layer!r}: {self._memory.value} scratchpad: {words} words required, "
                f"{self._depth} available; use a configuration with a deeper {self._memory.name}"
            )
        grant = Grant(self._given % self._depth, self._given)
        self._given += words
        return grant

    def holds(self, grant: Grant) -> bool:
        """Whether nothing that ``grant`` covers was given out again."""
        return self._given - grant.before <= self._depth
