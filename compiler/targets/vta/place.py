"""Placing activations in ACT by liveness, and rings for what is loaded once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, product

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory, Unit

from ...errors import DoesNotFitError
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .layers.lower import ADDEND
from .model import unit_of

__all__ = [
    "PLACINGS",
    "PLAIN",
    "Grant",
    "Item",
    "NoRoomError",
    "Placing",
    "Ring",
    "activation_items",
    "place",
    "shared_banks",
]

NEAR = 2
"""Layers this far apart, or nearer, may run at the same time."""


class NoRoomError(DoesNotFitError):
    """ACT is too small for what is there while layer ``layer`` runs: the activations ``names``,
    where they are known.
    """

    def __init__(self, message: str, layer: int, names: frozenset[str] = frozenset()) -> None:
        super().__init__(message)
        self.layer, self.names = layer, names


@dataclass(frozen=True, slots=True)
class Placing:
    """What decides between plans in which all layers run in the same ways, most of it between
    places for an item.  Which is best depends on the network.

    same_layer: what two units of one layer count that may want to read, or to write, the same bank
    at one time; those of layers near each other count 1.  few_banks: whether of places with equal
    counts those in fewer banks are better.  addends: whether VECTOR counts as a reader of the
    results of residual sums: it reads there what it wrote before.  eager: whether dense layers run
    block by block where little is gained, too.
    """

    same_layer: int = 1
    few_banks: bool = False
    addends: bool = True
    eager: bool = False


PLAIN = Placing(addends=False)
PLACINGS = (PLAIN, Placing(2, few_banks=True), Placing(), Placing(1, few_banks=True), Placing(2))
"""All that are tried."""


@dataclass(frozen=True, slots=True)
class Item:
    """Words of ACT for an activation, from layer ``first`` (which makes it) to layer ``last``.

    readers, writers: layer and unit of each that reads or writes it.  summed: layers that read
    there what they wrote, for a residual sum.
    """

    activation: Activation
    first: int
    last: int
    readers: frozenset[tuple[int, Unit]]
    words: int
    writers: frozenset[tuple[int, Unit]] = frozenset()
    summed: frozenset[int] = frozenset()

    def lives_with(self, other: "Item") -> bool:
        """Whether both are there at one time."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class _Users:
    """Which layers' units read an item, and which write it: a bit for each layer, by unit.

    Layer -1, which loads inputs, has bit 0.  near: also of the layers that may run at the same
    time.
    """

    users: tuple[Mapping[Unit, int], ...]
    near: tuple[Mapping[Unit, int], ...]

    @staticmethod
    def of(item: Item, *, addends: bool) -> "_Users":
        """addends: as of ``Placing``."""
        users: list[dict[Unit, int]] = []
        near: list[dict[Unit, int]] = []
        readers = set(item.readers)
        if addends:
            readers |= {(layer, Unit.VECTOR) for layer in item.summed}
        for each in (readers, item.writers):
            users.append({})
            near.append({})
            for layer, unit in each:
                users[-1][unit] = users[-1].get(unit, 0) | 1 << layer + 1
                around = (1 << 2 * NEAR + 1) - 1 << layer + 1 >> NEAR
                near[-1][unit] = near[-1].get(unit, 0) | around
        return _Users(tuple(users), tuple(near))

    def rivals(self, other: "_Users", same_layer: int) -> int:
        """Whether two units may want to read both items, or to write both, at one time:
        ``same_layer`` where they work for one, 1 where for layers that may run at the same time,
        else 0.
        """
        if not _meet(self.users, other.near):
            return 0
        return same_layer if same_layer > 1 and _meet(self.users, other.users) else 1


def _meet(some: Sequence[Mapping[Unit, int]], others: Sequence[Mapping[Unit, int]]) -> bool:
    """Whether different units read, or write, for a layer that both have."""
    return any(
        unit is not other_unit and layers & other_layers
        for users, other_users in zip(some, others, strict=True)
        for unit, layers in users.items()
        for other_unit, other_layers in other_users.items()
    )


def activation_items(layers: Sequence[LoweredLayer], sources: Sequence[Activation]) -> list[Item]:
    """Every activation, living from the layer that makes it to the last that reads it; of
    ``sources``, those that layers read, from the layer before the first that does.
    """
    readers: dict[str, set[tuple[int, Unit]]] = {}
    summed: dict[str, set[int]] = {}
    for number, layer in enumerate(layers):
        for activation in layer.inputs:
            units = {
                unit_of(nest)
                for nest in layer.kernel.nests
                if any(ref.buffer.name == activation.name for ref in nest.refs[1:])
            }
            entry = readers.setdefault(activation.name, set())
            entry |= {(number, unit) for unit in units or {Unit.VECTOR}}
        if any(ref.buffer.name == ADDEND for nest in layer.kernel.nests for ref in nest.refs[1:]):
            summed.setdefault(layer.output.name, set()).add(number)
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
            frozenset(summed.get(activation.name, ())),
        )
        for activation, first in made
    ]


def place(
    items: Sequence[Item],
    layers: Sequence[str],
    config: HardwareConfig,
    placing: Placing = PLAIN,
) -> list[int]:
    """First ACT word of every item; two that live at once never overlap.

    Where there is room, items that different units read (or write) at the same time lie in
    different banks, and new ones where nothing was for longest, so that their layer need not wait.
    Where there is none, they are packed.  What fits in half of ACT is placed as if there were no
    more.  layers: their names.  Raises NoRoomError, naming the
    layer, when there is no room even so.
    """
    half = _placed_in_half(items, layers, config, placing)
    if half is not None:
        return half
    largest = sorted(range(len(items)), key=lambda n: -items[n].words)
    orders = (range(len(items)), largest) if _most_words(items) <= config.act_depth else ()
    for both_ends, order in product((False, True), orders):
        placed = _spread([items[n] for n in order], config, placing, both_ends=both_ends)
        if placed is not None:
            found = dict(zip(order, placed, strict=True))
            return [found[n] for n in range(len(items))]
    return _pack(items, layers, config)


def shared_banks(placed: Sequence[tuple[Item, int]], config: HardwareConfig) -> int:
    """Banks in which two items lie that different units may want to read, or to write, at one time;
    once for each such two, twice if of one layer.  placed: items and their first words.
    """
    size, total = config.bank_words(Memory.ACT), 0
    banks = [(start // size, (start + item.words - 1) // size) for item, start in placed]
    users = [_Users.of(item, addends=True) for item, _ in placed]
    for number, (low, high) in enumerate(banks):
        for other in range(number):
            begin, end = banks[other]
            both = min(high, end) - max(low, begin) + 1
            if both > 0:
                total += both * users[number].rivals(users[other], 2)
    return total


def _placed_in_half(
    items: Sequence[Item], layers: Sequence[str], config: HardwareConfig, placing: Placing
) -> list[int] | None:
    """The places in an ACT of half the words, in the banks of these numbers; None without room.

    Items share no bank that they do not share there, so more memory costs no time.
    """
    half = config.act_depth // 2
    if half < 2 * config.act_banks or _most_words(items) > half:
        return None
    small = replace(config, act_depth=half)
    try:
        starts = place(items, layers, small, placing)
    except NoRoomError:
        return None
    bank = small.bank_words(Memory.ACT)
    return [start + start // bank * bank for start in starts]


def _most_words(items: Sequence[Item]) -> int:
    """Words that live at once, at most."""
    changes = sorted(
        change
        for item in items
        for change in ((item.first, item.words), (item.last + 1, -item.words))
    )
    return max(accumulate(words for _, words in changes), default=0)


def _spread(
    items: Sequence[Item], config: HardwareConfig, placing: Placing, *, both_ends: bool
) -> list[int] | None:
    """Each item at its best place beside those before it; None when one finds no place.

    Where one finds none, those that live with it are packed: each at its lowest place, or, from
    ``both_ends``, at the better of its lowest and its highest.
    """
    packed: set[int] = set()
    space = _Space(items, config)
    while space.count < len(items):
        item = items[space.count]
        rooms = space.room(item)
        if len(rooms) and space.count in packed:
            high = space.room(item, ends=True)[-1] if both_ends else rooms[0]
            rooms = np.array([rooms[0], high])
        if len(rooms):
            space.add(space.best(item, rooms, placing))
            continue
        more = {n for n, other in enumerate(items) if other.lives_with(item)} - packed
        if not more:
            return None
        packed |= more
        # Those before the first of them stay where they are.
        space.count = min(space.count, *more)
    return space.starts[: space.count].tolist()


class _Space:
    """Where the first ``count`` of some items lie."""

    def __init__(self, items: Sequence[Item], config: HardwareConfig) -> None:
        self._items, self._depth = items, config.act_depth
        self._users: list[_Users] = []
        self._bank = config.bank_words(Memory.ACT)
        self._banks = np.arange(0, self._depth, self._bank)
        self._words = np.array([item.words for item in items])
        self._first = np.array([item.first for item in items])
        self._last = np.array([item.last for item in items])
        self.starts = np.zeros(len(items), np.int64)
        self.count = 0

    def add(self, start: int) -> None:
        """Put the next item at word ``start``."""
        self.starts[self.count] = start
        self.count += 1

    def room(self, item: Item, *, ends: bool = False) -> NDArray[np.int64]:
        """Starts with nothing in the way that lives with ``item``, ascending: of banks, and after
        others; with ``ends``, those before others, and at the end of ACT.
        """
        begin = self.starts[: self.count]
        end = begin + self._words[: self.count]
        busy = (self._first[: self.count] <= item.last) & (self._last[: self.count] >= item.first)
        if ends:
            starts = np.append(begin[busy] - item.words, self._depth - item.words)
        else:
            starts = np.concatenate([end, self._banks])
        starts = np.unique(starts[(starts >= 0) & (starts + item.words <= self._depth)])
        free = (end[busy] <= starts[:, None]) | (starts[:, None] + item.words <= begin[busy])
        return starts[free.all(axis=1)]

    def best(self, item: Item, starts: NDArray[np.int64], placing: Placing) -> int:
        """The one of ``starts``, of ``item``, which comes next, with the fewest banks shared with
        rivals; then perhaps in the fewest banks; then where what lay there was read least lately;
        then the lowest.
        """
        begin = self.starts[: self.count]
        end = begin + self._words[: self.count]
        rivals = np.zeros(len(self._banks) + 1, np.int64)
        near = (self._first[: self.count] <= item.last + NEAR) & (
            self._last[: self.count] >= item.first - NEAR
        )
        while len(self._users) <= self.count:
            item_of = self._items[len(self._users)]
            self._users.append(_Users.of(item_of, addends=placing.addends))
        users = self._users[self.count]
        for number in np.flatnonzero(near).tolist():
            if weight := users.rivals(self._users[number], placing.same_layer):
                first, last = begin[number] // self._bank, (end[number] - 1) // self._bank
                rivals[first + 1 : last + 2] += weight
        total = np.cumsum(rivals)
        stops = starts + item.words
        first, last = starts // self._bank, (stops - 1) // self._bank
        shared = total[last + 1] - total[first]
        over = (begin < stops[:, None]) & (starts[:, None] < end)
        lately = np.where(over, self._last[: self.count], -NEAR).max(axis=1, initial=-NEAR)
        banks = last - first if placing.few_banks else np.zeros_like(first)
        return int(starts[np.lexsort((starts, lately, banks, shared))[0]])


def _pack(items: Sequence[Item], layers: Sequence[str], config: HardwareConfig) -> list[int]:
    """Each item at the lowest place, in the order they are given, or else the largest first.

    Raises NoRoomError for the first that finds none in the order they are given.
    """
    failed: Item | None = None
    taken, names = 0, frozenset[str]()
    for order in (items, sorted(items, key=lambda item: -item.words)):
        space = _Space(order, config)
        for item in order:
            rooms = space.room(item)
            if not len(rooms):
                busy = [each for each in order[: space.count] if each.lives_with(item)]
                if failed is None:
                    failed, taken = item, sum(other.words for other in busy)
                    names = frozenset(each.activation.name for each in (item, *busy))
                break
            space.add(int(rooms[0]))
        else:
            starts = dict(zip(map(id, order), space.starts.tolist(), strict=True))
            return [starts[id(item)] for item in items]
    assert failed is not None
    name = layers[failed.first] if failed.first >= 0 else failed.activation.name
    raise NoRoomError(
        f"layer {name!r}: act scratchpad: {failed.words} words required beside {taken} in use, "
        f"{config.act_depth} available; use a configuration with a deeper ACT, or a smaller input",
        failed.first,
        names,
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

    def holds(self, grant: Grant, more: int = 0) -> bool:
        """Whether nothing that ``grant`` covers was given out again, nor is by ``more`` words."""
        return self._given + more - grant.before <= self._depth
