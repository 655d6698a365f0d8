"""Search for the plan: which activations stay in DRAM, and how each layer is tiled."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from dovetail.isa.config import HardwareConfig

from ...errors import DoesNotFitError
from ...options import Overlap
from .cascade_sizes import CascadeSizes
from .choice import Choice
from .choose import Chooser
from .constant_loads import has_short_parameters
from .grains import Grain
from .items import Item, activation_items
from .join_loads import PACE
from .layers.definition import LoweredLayer
from .place import NoRoomError
from .placing import PLAIN, Placing
from .plan import Ends, Placer, Plan
from .roof import roof_of
from .schedules import Schedules
from .tile_estimate import Tile
from .ways import LayerWays

__all__ = ["Planner"]

MOST_REFUSED = 100
"""Plans that seem better but find no place in ACT, at most; then the search for others ends."""

SMALL = 32
"""Activations of less than this part of ACT stay there unless they do not fit."""


def _with_largest(
    items: Sequence[Item],
    streamed: frozenset[str],
    problem: NoRoomError,
) -> frozenset[str]:
    """``streamed`` and the largest activation on chip that is there when ``problem`` arises; or of
    those that are there longer than their layers, as others of a cascade are.
    """
    whole = [item for item in items if item.activation.name not in streamed]
    there = [item for item in whole if item.first <= problem.layer <= item.last]
    there = there or [item for item in whole if item.activation.name in problem.names]
    if not there:
        raise DoesNotFitError(str(problem))
    return streamed | {max(there, key=lambda item: item.words).activation.name}


class Planner:
    """Plans for different choices of what is wholly on chip, and different prices of DRAM."""

    def __init__(
        self,
        layers: Sequence[LoweredLayer],
        ends: Ends,
        config: HardwareConfig,
        overlap: Overlap = Overlap.LAYERS,
        look: Callable[[str], None] = lambda where: None,
    ) -> None:
        """``look``: as of ``compile_partition``."""
        self.items, self.look = activation_items(layers, ends.sources), look
        self.layers, self.ends, self.config, self.overlap = layers, ends, config, overlap
        self.placer = Placer(layers, self.items, config, overlap)
        self.schedules = Schedules()
        sources = [x for x in ends.sources if x.name not in ends.inside]
        self.roof = roof_of(layers, sources, ends.results, config, ends.read)
        waits = self.roof.dram >= PACE * self.roof.cycles
        self.parts_parameters = waits and has_short_parameters(layers, config)
        """True if parameters had better be kept apart by their forms: DRAM sets the pace."""
        sizes = CascadeSizes(layers, self.items, ends.results, config)
        tiles: dict[tuple[object, ...], list[Tile]] = {}
        self.choosers = {
            edges: Chooser(
                LayerWays(
                    layers,
                    self.items,
                    ends.results,
                    config,
                    overlap,
                    edges=edges,
                    sizes=sizes,
                    tiles=tiles,
                    look=look,
                )
            )
            for edges in (False, True)
        }
        self.chooser = self.choosers[False]

    def best(self, price: float = 0.0, *, edges: bool = False) -> Plan:
        """The plan whose cycles, and ``price`` for each of DRAM's, come to least.

        edges: with those in which a layer waits for the data of the one before, and a cascade for
        constants that come again.

        First, of what does not fit together the largest goes: each round moves at least one more,
        so this ends.  Then single activations go, or come back, while that saves cost and not too
        many others found no place; at last only those of layers that would wait for banks.
        Raises DoesNotFitError, naming the layer, when one does not fit even so.
        """
        self.chooser = self.choosers[edges]
        gone: frozenset[str] = frozenset()
        while True:
            try:
                plan = self.plan(gone, price)
            except NoRoomError as problem:
                gone = _with_largest(self.items, gone, problem)
            else:
                break
        found, refused = True, 0
        while found and refused < MOST_REFUSED:
            found = False
            for other in self.neighbours(gone):
                if refused == MOST_REFUSED:
                    break
                try:
                    if self.chooser.cost(other, gone, price) >= plan.cost(price) - plan.wait_cycles:
                        continue
                except NoRoomError:
                    continue
                try:
                    plan = self.plan(other, price)
                except NoRoomError:
                    refused += 1
                    continue
                gone, found = other, True
        return self._without_waits(plan, price)

    def _without_waits(self, plan: Plan, price: float) -> Plan:
        """``plan`` without some activations of layers that wait, where that costs less in all."""
        for number in plan.waits:
            layer = self.layers[number]
            for name in dict.fromkeys(x.name for x in (*layer.inputs, layer.output)):
                gone = plan.gone ^ {name}
                try:
                    if self.chooser.cost(gone, plan.gone, price) >= plan.cost(price):
                        continue
                    other = self.plan(gone, price)
                except NoRoomError:
                    continue
                if other.cost(price) < plan.cost(price):
                    plan = other
        return plan

    def neighbours(self, gone: frozenset[str]) -> Iterator[frozenset[str]]:
        """``gone`` with one more, one less, or one in place of one that lives with it."""
        worth = [item for item in self.items if SMALL * item.words >= self.config.act_depth]
        for item in worth:
            if item.activation.name not in gone:
                yield gone | {item.activation.name}
        for item in worth:
            if item.activation.name not in gone:
                continue
            less = gone - {item.activation.name}
            yield less
            for other in worth:
                if other.activation.name not in gone and other.lives_with(item):
                    yield less | {other.activation.name}

    def near(self, plan: Plan) -> Iterator[Plan]:
        """Plans for which one activation goes or comes back, the cheapest first."""
        costs: dict[frozenset[str], float] = {}
        for gone in self.neighbours(plan.gone):
            with suppress(NoRoomError):
                costs[gone] = self.chooser.cost(gone, plan.gone)
        for gone in sorted(costs, key=costs.__getitem__):
            try:
                yield self.plan(gone)
            except NoRoomError:
                continue

    def options(self, first: int, count: int, gone: frozenset[str]) -> Iterator[Choice]:
        """Every way that a plan may have to run ``count`` layers from ``first`` on."""
        for chooser in self.choosers.values():
            like: dict[Grain, Choice] = {}
            for choice in chooser.ways.all(first, count, gone):
                like.setdefault(choice.grain, choice)
                yield choice
            turned = (chooser.ways.turned(choice, gone) for choice in like.values())
            yield from (choice for choice in turned if choice is not None)
            if count == 1:
                yield from chooser.ways.larger(first, gone)
                yield from chooser.ways.planes(first, gone)

    def plan(self, gone: frozenset[str], price: float = 0.0) -> Plan:
        """With the activations ``gone`` in DRAM, or on chip a few rows at a time.

        Raises NoRoomError when that does not fit.
        """
        return self.built(self.chooser.cheapest(gone, price), gone)

    def built(
        self,
        choices: Sequence[Choice],
        gone: frozenset[str],
        placing: Placing = PLAIN,
    ) -> Plan:
        """The plan of ``choices``, which are all layers.

        Raises NoRoomError when that does not fit.
        """
        built = [self.chooser.ways.build(choice, gone) for choice in choices]
        return self.placer.plan(choices, built, gone, placing)
