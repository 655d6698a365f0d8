"""Plans drawn at random in place of the fastest: each has to give the right bytes.

To search for the fastest takes four fifths of a compilation, and what it finds is often alike.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random

import pytest

from dovetail.compiler.errors import DoesNotFitError
from dovetail.compiler.options import Overlap
from dovetail.compiler.targets.vta import blockwise, emit
from dovetail.compiler.targets.vta.block_cascade import MEMBERS, Blocks
from dovetail.compiler.targets.vta.choice import Choice
from dovetail.compiler.targets.vta.deepen import deepened
from dovetail.compiler.targets.vta.draft import Draft, make_draft
from dovetail.compiler.targets.vta.last_changes import without_waits
from dovetail.compiler.targets.vta.layers.activation import Activation
from dovetail.compiler.targets.vta.place import NoRoomError
from dovetail.compiler.targets.vta.placing import PLACINGS
from dovetail.compiler.targets.vta.plan import Plan
from dovetail.compiler.targets.vta.planner import Planner
from dovetail.compiler.targets.vta.timing import Timing

__all__ = ["drawn_plans"]

TRIALS = 8
"""Plans that are drawn, at most, until one has room; then the planner's own is taken."""

TOGETHER = 4
"""Layers that run as one, at most."""

SLOWEST = 4
"""How many times longer than the fastest way another may take: tiles of a word take minutes."""


@contextmanager
def drawn_plans(seed: int) -> Iterator[None]:
    """Programs are of plans that ``seed`` draws; dense layers run block by block where they can."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blockwise, "EAGER_PART_CYCLES", -(10**9))
        patch.setattr(emit, "fastest", _Drawn(Random(seed)))
        yield


@dataclass(frozen=True)
class _Drawn:
    random: Random

    def __call__(
        self,
        planner: Planner,
        activations: Mapping[str, Activation],
        overlap: Overlap,
        timing: Timing,
        effort: float,
    ) -> Draft:
        plan = self._plan(planner)
        draft = make_draft(planner, plan, activations, overlap, timing)
        if overlap is Overlap.LAYERS and self.random.random() < 0.2:  # it takes longest
            draft = without_waits(draft, planner.config, timing)
        return draft

    def _plan(self, planner: Planner) -> Plan:
        own = planner.best(edges=self.random.random() < 0.5)
        for _ in range(TRIALS):
            more = self.random.choice((0, 0, 0.1, 0.5))
            names = (item.activation.name for item in planner.items)
            gone = own.gone | {name for name in names if self.random.random() < more}
            placing = replace(self.random.choice(PLACINGS), eager=self.random.random() < 0.8)
            try:
                return planner.built(self._choices(planner, gone), gone, placing)
            except DoesNotFitError:
                continue
        return own

    def _choices(self, planner: Planner, gone: frozenset[str]) -> list[Choice]:
        """Ways to run all layers; as fine as may be, sometimes."""
        found: list[Choice] = []
        first, count = 0, len(planner.layers)
        alone = self.random.choice((0.2, 0.6, 0.9))
        while first < count:
            most = 1 if self.random.random() < alone else min(TOGETHER, count - first)
            ways = [
                way
                for together in range(1, most + 1)
                for way in planner.options(first, together, gone)
            ]
            if (
                first + max(MEMBERS) <= count and self.random.random() < 0.5
            ):  # few layers can run so
                three = planner.options(first, max(MEMBERS), gone)
                ways = [way for way in three if isinstance(way.how, Blocks)] or ways
            if not ways:
                raise NoRoomError("no way to run a layer", first)
            fastest = min(way.cycles / way.count for way in ways)
            near = [way for way in ways if way.cycles <= SLOWEST * fastest * way.count]
            # Of each number of layers and each kind alike: there are most ways to run few.
            kinds = defaultdict[tuple[int, str], list[Choice]](list)
            for way in near:
                kinds[way.count, type(way.how).__name__].append(way)
            way = self.random.choice(kinds[self.random.choice(sorted(kinds))])
            deeper = list(deepened(way)) if self.random.random() < 0.5 else []
            found.append(self.random.choice([way, *deeper]))
            first += way.count
        if self.random.random() < 0.2:
            return self.random.choice(list(planner.chooser.grained(found, gone)))
        return found
