"""Decisions about a kernel's sums: their register tiles and the orders of loops."""

import random
from dataclasses import replace
from math import prod
from typing import TypeVar

from dovetail.isa.frozen import frozen

from ..loops.expressions import Constant
from ..loops.ir import Function
from ..schedule.rules.cpu.machine import Machine
from ..schedule.steps.reduction import read_reduction
from ..schedule.steps.register_tile import RegisterTile
from ..schedule.steps.schedule import Schedule, Step
from ..schedule.steps.site import find_loop
from ..schedule.steps.strips import Strips

__all__ = ["Rows", "Tiles", "choices_of", "key_of"]

T = TypeVar("T")

STRIPS = "strips"
SPILLED = 1.25
"""Register tiles that are larger than this times the registers are never drawn."""


@frozen
class Tiles:
    """The tiles of one sum.

    counts: of values, or vectors, of each loop around it.  registers: for a tile.  default: the
    rule's.
    """

    counts: dict[str, int]
    registers: int
    default: RegisterTile

    def sample(self, rng: random.Random) -> RegisterTile:
        """Any tile."""
        found = replace(self.default, tiles=self._tiles(rng))
        if rng.random() < 0.5:
            found = replace(found, loops=_shuffled(found.loops, rng))
        if rng.random() < 0.3:
            found = replace(found, sums=_shuffled(found.sums, rng))
        return found

    def mutate(self, tile: RegisterTile, rng: random.Random) -> RegisterTile:
        """With a field changed, or left to the rule."""
        match rng.choice(("tiles", "tiles", "loops", "sums")):
            case "tiles" if rng.random() < 0.5:
                return replace(tile, tiles=self._near(tile.tiles, rng))
            case "tiles":
                return replace(tile, tiles=self._tiles(rng))
            case "loops" if rng.random() < 0.8:
                return replace(tile, loops=_swapped(tile.loops, rng))
            case "loops":
                return replace(tile, loops=self.default.loops)
            case _ if rng.random() < 0.8:
                return replace(tile, sums=_swapped(tile.sums, rng))
            case _:
                return replace(tile, sums=self.default.sums)

    def cross(self, one: RegisterTile, other: RegisterTile, rng: random.Random) -> RegisterTile:
        """Each field of one of the two."""
        return replace(
            one,
            tiles=rng.choice((one, other)).tiles,
            loops=rng.choice((one, other)).loops,
            sums=rng.choice((one, other)).sums,
        )

    def _tiles(self, rng: random.Random) -> tuple[tuple[str, int], ...]:
        """Tiles of one to three loops, in any order; those that cut a loop evenly are likelier."""
        useful = [name for name, count in self.counts.items() if count > 1]
        chosen = rng.sample(useful, min(len(useful), rng.choice((1, 2, 2, 2, 2, 3))))
        room, found = self.registers * SPILLED, []
        for name in chosen:
            most = min(self.counts[name], int(room))
            if most < 2:
                break
            size = rng.randint(2, most)
            if rng.random() < 0.7:
                size = -(-self.counts[name] // -(-self.counts[name] // size))
            found.append((name, size))
            room /= size
        return tuple(found)

    def _near(
        self, tiles: tuple[tuple[str, int], ...], rng: random.Random
    ) -> tuple[tuple[str, int], ...]:
        """One size a little larger or smaller, or two loops changed in their order."""
        if not tiles:
            return self._tiles(rng)
        if len(tiles) > 1 and rng.random() < 0.3:
            return _swapped(tiles, rng)
        place = rng.randrange(len(tiles))
        name, size = tiles[place]
        size = min(max(size + rng.choice((-2, -1, 1, 2)), 1), self.counts[name])
        found = (*tiles[:place], (name, size), *tiles[place + 1 :])
        return found if prod(n for _, n in found) <= self.registers * SPILLED else tiles


@frozen
class Rows:
    """Number of rows of Winograd's tiles that go through all their steps at a time, of ``most``."""

    most: int
    default: Strips

    def sample(self, rng: random.Random) -> Strips:
        """Any number, or the rule's."""
        return replace(self.default, rows=self._any(rng)) if rng.random() < 0.7 else self.default

    def mutate(self, strips: Strips, rng: random.Random) -> Strips:
        """A few more or fewer, or any number."""
        near = strips.rows + rng.choice((-2, -1, 1, 2))
        rows = near if rng.random() < 0.5 else self._any(rng)
        return replace(strips, rows=min(max(rows, 1), self.most))

    def cross(self, one: Strips, other: Strips, rng: random.Random) -> Strips:
        """One of the two."""
        return rng.choice((one, other))

    def _any(self, rng: random.Random) -> int:
        return rng.randint(1, self.most)


def key_of(step: Step) -> str | None:
    """The key of a step that may be chosen: a sum's registers; None for other steps."""
    if isinstance(step, RegisterTile):
        return step.buffer
    return STRIPS if isinstance(step, Strips) else None


def choices_of(definition: Function, rule: Schedule, machine: Machine) -> dict[str, Tiles | Rows]:
    """Choices for steps of a rule's schedule, by their keys."""
    found: dict[str, Tiles | Rows] = {}
    if not any(map(key_of, rule.trace)):
        return found
    before = Schedule.of(definition, rule.intrinsics)
    for step in rule.trace:
        if isinstance(step, RegisterTile):
            sizes = read_reduction(before.function, step.buffer, "tiles").sizes
            vectors = {
                name: -(-sizes[name] // (step.lanes if name == step.vector else 1))
                for name in step.loops
            }
            found[step.buffer] = Tiles(vectors, machine.registers, step)
        elif isinstance(step, Strips):
            extents = [find_loop(before.function, name)[1].extent for name in step.loops]
            counts = [int(each.value) for each in extents if isinstance(each, Constant)]
            found[STRIPS] = Rows(min(counts), step)
        before = before.then(step)
    return found


def _shuffled(values: tuple[T, ...], rng: random.Random) -> tuple[T, ...]:
    return tuple(rng.sample(values, len(values)))


def _swapped(values: tuple[T, ...], rng: random.Random) -> tuple[T, ...]:
    """With one value moved to another place."""
    found = list(values)
    if len(found) > 1:
        found.insert(rng.randrange(len(found)), found.pop(rng.randrange(len(found))))
    return tuple(found)
