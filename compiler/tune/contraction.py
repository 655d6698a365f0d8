"""What may be decided about a contraction: its register tile, and the orders of its loops."""

import random
from dataclasses import dataclass, replace
from typing import TypeVar

from ..define.operand import Operand
from ..graph.ir import Graph
from ..graph.operators.contractions import Contract
from ..graph.operators.winograd import Winograd
from ..loops.expressions import Buffer, Constant
from ..lower.decisions import Decisions
from ..lower.dots import find_dots
from ..lower.tiling import choose_tiling
from ..lower.winograd import products
from ..schedule.rules.cpu.machine import Machine

__all__ = ["Contraction", "contraction_of"]

T = TypeVar("T")

SPILLED = 1.25
"""Register tiles that are larger than this times the registers are never drawn."""


@dataclass(frozen=True, slots=True)
class Contraction:
    """counts: of values, or vectors, of each label of the output.  outer, summed: the labels in
    loops.  registers: for a tile.  rows: of Winograd's tiles; 0 for none.
    """

    counts: dict[int, int]
    outer: tuple[int, ...]
    summed: tuple[int, ...]
    registers: int
    default: tuple[tuple[int, int], ...]
    rows: int = 0

    def sample(self, rng: random.Random) -> Decisions:
        """Any decisions."""
        found = Decisions(tiles=self._tiles(rng))
        if rng.random() < 0.5:
            found = replace(found, outer=_shuffled(self.outer, rng))
        if rng.random() < 0.3:
            found = replace(found, summed=_shuffled(self.summed, rng))
        if self.rows and rng.random() < 0.7:
            found = replace(found, rows=rng.randint(1, self.rows))
        return found

    def mutate(self, decisions: Decisions, rng: random.Random) -> Decisions:
        """With one of them changed, or left to the rule."""
        names = ["tiles", "tiles", "outer", "summed", *(["rows", "rows"] if self.rows else [])]
        match rng.choice(names):
            case "tiles" if rng.random() < 0.5:
                return replace(decisions, tiles=self._near(decisions.tiles or self.default, rng))
            case "tiles":
                return replace(decisions, tiles=self._tiles(rng))
            case "outer" if rng.random() < 0.8:
                return replace(decisions, outer=_swapped(decisions.outer or self.outer, rng))
            case "outer":
                return replace(decisions, outer=None)
            case "summed" if rng.random() < 0.8:
                return replace(decisions, summed=_swapped(decisions.summed or self.summed, rng))
            case "summed":
                return replace(decisions, summed=None)
            case _:
                near = (decisions.rows or self.rows) + rng.choice((-2, -1, 1, 2))
                rows = near if rng.random() < 0.5 else rng.randint(1, self.rows)
                return replace(decisions, rows=min(max(rows, 1), self.rows))

    def _tiles(self, rng: random.Random) -> tuple[tuple[int, int], ...]:
        """Of one to three labels, in any order; tiles that cut a label evenly are likelier."""
        useful = [label for label, count in self.counts.items() if count > 1]
        chosen = rng.sample(useful, min(len(useful), rng.choice((1, 2, 2, 2, 2, 3))))
        room, found = self.registers * SPILLED, []
        for label in chosen:
            most = min(self.counts[label], int(room))
            if most < 2:
                break
            size = rng.randint(2, most)
            if rng.random() < 0.7:
                size = -(-self.counts[label] // -(-self.counts[label] // size))
            found.append((label, size))
            room /= size
        return tuple(found)

    def _near(
        self, tiles: tuple[tuple[int, int], ...], rng: random.Random
    ) -> tuple[tuple[int, int], ...]:
        """One size a little larger or smaller, or two labels changed in their order."""
        if not tiles:
            return self._tiles(rng)
        if len(tiles) > 1 and rng.random() < 0.3:
            return _swapped(tiles, rng)
        place = rng.randrange(len(tiles))
        label, size = tiles[place]
        size = min(max(size + rng.choice((-2, -1, 1, 2)), 1), self.counts[label])
        found = (*tiles[:place], (label, size), *tiles[place + 1 :])
        total = 1
        for _, each in found:
            total *= each
        return found if total <= self.registers * SPILLED else tiles


def contraction_of(graph: Graph, machine: Machine) -> Contraction | None:
    """Of the group's anchor; None when it is no contraction."""
    made = {name for node in graph.nodes for name in node.outputs}
    for node in graph.nodes:
        operator = node.operator
        if isinstance(operator, Winograd):
            x, u = (graph.types[name].shape for name in node.inputs)
            down, across = operator.tiles
            v = (operator.size**2, x[1], down * across, x[4])
            m = (operator.size**2, u[1], down * across, u[4])
            return _contraction(products(v, m), machine, down)
        if isinstance(operator, Contract):
            operands = [_operand(graph, name, name not in made) for name in node.inputs]
            dots = find_dots(operator, operands)
            if dots is None:
                return _contraction(operator, machine, 0)
            return _contraction(dots.packs, machine.of_dots(), 0)
    return None


def _contraction(operator: Contract, machine: Machine, rows: int) -> Contraction:
    tiling = choose_tiling(operator, machine)
    counts = {
        label: -(-operator.sizes[label] // (tiling.lanes if label == tiling.vector else 1))
        for label in operator.kept
    }
    summed = tuple(label for label in operator.summed if label != tiling.vector)
    tiles = tuple(tiling.tiles.items())
    return Contraction(counts, operator.kept, summed, machine.registers, tiles, rows)


def _operand(graph: Graph, name: str, outside: bool) -> Operand:
    """As the lowering sees it, as far as types and places go."""
    kind = graph.types[name]
    buffer = Buffer("in", kind.shape, kind.dtype) if outside else None
    return Operand(kind, lambda indices, guarded: Constant(0, kind.dtype), buffer)


def _shuffled(values: tuple[T, ...], rng: random.Random) -> tuple[T, ...]:
    return tuple(rng.sample(values, len(values)))


def _swapped(values: tuple[T, ...], rng: random.Random) -> tuple[T, ...]:
    """With one value moved to another place."""
    found = list(values)
    if len(found) > 1:
        found.insert(rng.randrange(len(found)), found.pop(rng.randrange(len(found))))
    return tuple(found)
