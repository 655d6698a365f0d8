"""How layers run, one by one or in cascades, so that the sum of expected cycles is least."""

from collections.abc import Iterator, Sequence

from dovetail.isa.frozen import replace

from .block_cascade import Blocks
from .cascade import Sized
from .choice import Change, Choice
from .grains import GRAINS, PIXELS, TILES
from .place import NoRoomError
from .room import Beside, Rooms
from .tile_estimate import Tile
from .tile_limits import sums_pixels
from .ways import MOST_LAYERS, LayerWays

__all__ = ["Chooser"]

MOST_WAYS = 8
"""Ways to run a group of layers that may be tried, at most."""

NEVER = 1 << 60
"""Cost of what is impossible."""


class Chooser:
    """Finds how all layers run at the least cost, for any choice of what is wholly on chip.

    ways: to run the layers.
    """

    def __init__(self, ways: LayerWays) -> None:
        self.ways = ways
        self._count, self._items, self._config = len(ways.layers), ways.items, ways.config
        self._sums: dict[tuple[frozenset[str], float], tuple[list[float], list[float]]] = {}
        self._room: dict[frozenset[str], Rooms] = {}

    def cheapest(self, gone: frozenset[str], price: float = 0.0) -> list[Choice]:
        """How all layers run at the least cost, in their order.

        gone: activations that are not wholly on chip.  price: what each cycle of DRAM adds to the
        cost.

        Raises NoRoomError when there is no way to run one of the layers.
        """
        room = self._rooms(gone)
        count = self._count
        costs: list[float] = [0, *[NEVER] * count]
        chosen: list[Choice | None] = [None] * (count + 1)
        for first in range(count):
            if costs[first] >= NEVER:
                continue
            options, problem = self.ways.at(first, room, gone, price)
            for option in options:
                end, cost = first + option.count, costs[first] + option.cost(price)
                if cost < costs[end]:
                    costs[end], chosen[end] = cost, option
            if all(cost >= NEVER for cost in costs[first + 1 :]):
                raise NoRoomError(str(problem), first)
        found: list[Choice] = []
        end = count
        while end:
            choice = chosen[end]
            assert choice is not None
            found[:0] = choice.apart
            end = choice.first
        return found

    def cost(self, gone: frozenset[str], base: frozenset[str], price: float = 0.0) -> float:
        """The cost of ``cheapest(gone)``, found from the sums for ``base``, of which most stay the
        same.

        Raises NoRoomError when there is no way to run a layer.
        """
        changed = gone ^ base
        moved = [item for item in self._items if item.activation.name in changed]
        start = min(max(item.first, 0) for item in moved)
        last = max(item.last for item in moved)
        before, after = self._both_ways(base, price)
        count, room = self._count, Beside(self._rooms(base), moved, gone)
        costs = [*before[: start + 1], *[NEVER] * (count - start)]
        for first in range(max(0, start - MOST_LAYERS + 1), last + 1):
            if costs[first] < NEVER:
                for end, cost in self.ways.costs(first, room, gone, price):
                    if end > start:
                        costs[end] = min(costs[end], costs[first] + cost)
        ends = range(last + 1, min(count, last + MOST_LAYERS) + 1)
        found = min(costs[end] + after[end] for end in ends)
        if found >= NEVER:
            raise NoRoomError(f"no room for {', '.join(sorted(base - gone))}", start)
        return found

    def _both_ways(self, gone: frozenset[str], price: float) -> tuple[list[float], list[float]]:
        """For each layer, the least cost of all layers before it, and of it and all after it."""
        if (gone, price) not in self._sums:
            count, room = self._count, self._rooms(gone)
            options = [self.ways.costs(n, room, gone, price) for n in range(count)]
            before: list[float] = [0, *[NEVER] * count]
            after: list[float] = [*[NEVER] * count, 0]
            for first in range(count):
                for end, cost in options[first]:
                    before[end] = min(before[end], before[first] + cost)
            for first in reversed(range(count)):
                after[first] = min(
                    (after[end] + cost for end, cost in options[first]), default=NEVER
                )
            self._sums = {(gone, price): (before, after)}
        return self._sums[gone, price]

    def _rooms(self, gone: frozenset[str]) -> Rooms:
        """The room beside the activations that are on chip."""
        if gone not in self._room:
            there = (item for item in self._items if item.activation.name not in gone)
            self._room = {gone: Rooms(there, self._count, self._config.act_depth)}
        return self._room[gone]

    def grained(self, choices: Sequence[Choice], gone: frozenset[str]) -> Iterator[list[Choice]]:
        """Variants of ``choices`` in finer instructions, one for each of ``GRAINS``.

        Layers that are all on chip run one by one in them.  Layers in fewer tiles than usual stay
        so.
        """
        for grain in GRAINS:
            found = []
            for choice in choices:
                members = range(choice.first, choice.first + choice.count)
                whole = [self.ways.whole(n, gone) for n in members]
                parted = choice.count > 1 and any(self.ways.parts_taps[n] for n in members)
                if choice.grain.tiles < TILES:
                    found.append(choice)
                elif all(whole) and not parted:
                    found += [
                        Choice(n, 1, *each, None, self.ways.grained(n, grain))
                        for n, each in zip(members, whole, strict=True)
                        if each
                    ]
                elif not isinstance(choice.how, Tile | Blocks) and not grain.by_rows:
                    found.append(replace(choice, grain=grain))
                else:
                    found.append(choice)
            yield found

    def larger(
        self, choices: Sequence[Choice], gone: frozenset[str], below: int = NEVER
    ) -> list[Choice]:
        """``choices`` with fewer instructions for layers that are all on chip and take fewer cycles
        than ``below``.
        """
        return [
            next(self.ways.larger(choice.first, gone), choice)
            if choice.count == 1 and choice.cycles < below
            else choice
            for choice in choices
        ]

    def by_channels(self, choices: Sequence[Choice]) -> list[Choice]:
        """``choices`` with tiles of some rows of some channels for layers that are all on chip."""
        return [
            replace(choice, grain=self.ways.plain(choice.first)) if choice.how is None else choice
            for choice in choices
        ]

    def by_pixels(self, choices: Sequence[Choice]) -> list[Choice]:
        """``choices`` with tiles of some pixels of all channels for sums over rows of pixels, where
        half of WGT holds all weights.

        Layers that read these sums then begin with the first pixels.
        """
        return [
            replace(choice, grain=PIXELS)
            if choice.how is None and sums_pixels(self.ways.layers[choice.first], self._config)
            else choice
            for choice in choices
        ]

    def turned(self, choices: Sequence[Choice], gone: frozenset[str]) -> list[Choice]:
        """``choices`` with turned buffers in cascades that are held up by rows stored twice.

        One cascade may become two, if TAP then has room for the taps of each, and no more goes to
        DRAM.
        """
        return [each for choice in choices for each in self._turned(choice, gone)]

    def _turned(self, choice: Choice, gone: frozenset[str]) -> Sequence[Choice]:
        if not isinstance(choice.how, Sized):
            return (choice,)
        if whole := self.ways.turned(choice, gone):
            return (whole,)
        found: list[Sequence[Choice]] = []
        for cut in range(2, choice.count - 1):
            halves = (choice.first, cut), (choice.first + cut, choice.count - cut)
            plain = [self._cascade(*half, choice, gone) for half in halves]
            parts = [each for each in plain if each is not None]
            turned = [self.ways.turned(each, gone) or each for each in parts]
            moved = sum(each.dram for each in turned)
            if len(parts) == len(halves) and turned != parts and moved <= choice.dram:
                found.append(turned)
        return min(found, key=lambda parts: sum(map(_cycles, parts)), default=(choice,))

    def _cascade(self, first: int, count: int, like: Choice, gone: frozenset[str]) -> Choice | None:
        """The fastest cascade of some layers with the grain of another."""
        ways = self.ways.all(first, count, gone)
        fitting = (way for way in ways if isinstance(way.how, Sized) and way.grain == like.grain)
        return min(fitting, key=_cycles, default=None)

    def changes(self, choices: Sequence[Choice], number: int, gone: frozenset[str]) -> list[Change]:
        """Other ways to run the layers of a choice, alone or with those of the next ones."""
        first = choices[number].first
        found: list[Change] = []
        for last in choices[number : number + 3]:
            count = last.first + last.count - first
            ways = sorted(self.ways.all(first, count, gone), key=_cycles)
            found += [Change((each,)) for each in ways[:MOST_WAYS]]
            if count > 1:
                for cut in range(1, count):
                    one = min(self.ways.all(first, cut, gone), key=_cycles, default=None)
                    other = min(
                        self.ways.all(first + cut, count - cut, gone), key=_cycles, default=None
                    )
                    if one and other:
                        found.append(Change((one, other)))
        same = tuple(choice.key for choice in choices)
        found = [each for each in found if not set(each.key) <= set(same)]
        return sorted(
            found,
            key=lambda change: (
                sum(map(_cycles, change.choices))
                - sum(c.cycles for c in choices if change.first <= c.first < change.end)
            ),
        )


def _cycles(choice: Choice) -> int:
    return choice.cycles
