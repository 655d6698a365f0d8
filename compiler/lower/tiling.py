"""How a contraction is cut for registers: which label lies in lanes, which are unrolled.

A tile of the output is kept in registers while the summed labels run.  Each step loads, for every
operand, one vector or one scalar for each combination of the tiled labels that the operand depends
on, and does one multiply-add for each element of the tile; the tile is chosen for few loads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from ..dtypes import DType
from ..graph.operators.contractions import Axis, Contract

__all__ = ["Machine", "Tiling", "choose_tiling"]


@dataclass(frozen=True, slots=True)
class Machine:
    """What a tile may use of a CPU's core."""

    vector_bytes: int = 64
    registers: int = 32
    """Vector registers, for a tile and the operands of a step."""
    multiply_adds: int = 2
    """Started in a cycle."""
    loads: int = 2
    """Started in a cycle."""
    latency: int = 4
    """Cycles from a multiply-add to the next one that needs its result."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """vector: the label that lies in lanes; None for scalars.  It may be a summed one.

    lanes: their number.  tiles: how many values of a label, or vectors of the vector label, are
    in a tile.
    """

    vector: int | None
    lanes: int
    tiles: Mapping[int, int]


def choose_tiling(operator: Contract, machine: Machine) -> Tiling:
    """The tiling of least estimated time."""
    vector = _vector_label(operator)
    lanes = 1
    if vector is not None:
        lanes = max(min(machine.vector_bytes // _width(operator.dtype), operator.sizes[vector]), 1)
    counts = {
        label: operator.sizes[label] if label != vector else -(-operator.sizes[label] // lanes)
        for label in operator.output
    }
    uses = [{label for axis in axes for label, _ in axis} for axes in operator.operands]
    best, best_time = {}, _time(counts, {}, uses, machine)
    useful = [label for label in reversed(operator.output) if counts[label] > 1]
    for chosen in (*combinations(useful, 1), *combinations(useful, 2)):
        for tiles in _candidates(chosen, counts, machine.registers):
            if prod(tiles.values()) + min(_loads(tiles, uses)) + 1 > machine.registers:
                continue
            time = _time(counts, tiles, uses, machine)
            if time < best_time * 0.999:
                best, best_time = tiles, time
    return Tiling(vector, lanes, best)


def _width(dtype: DType) -> int:
    return max(dtype.bytes, 4)


def _vector_label(operator: Contract) -> int | None:
    """The last label of the output that every operand has contiguous, or not at all.

    Else a summed one of this kind.
    """
    candidates = (*reversed(operator.output), *reversed(operator.summed))
    for label in candidates:
        found = [_contiguous(axes, label) for axes in operator.operands]
        if operator.sizes[label] > 1 and all(each is not False for each in found) and any(found):
            return label
    return None


def _contiguous(axes: Sequence[Axis], label: int) -> bool | None:
    """Whether neighbouring values of a label are neighbours in memory; None when it is not used."""
    places = [
        (place, step) for place, axis in enumerate(axes) for own, step in axis if own == label
    ]
    if not places:
        return None
    return places == [(len(axes) - 1, 1)]


def _candidates(
    chosen: tuple[int, ...], counts: Mapping[int, int], limit: int
) -> list[dict[int, int]]:
    if len(chosen) == 1:
        (label,) = chosen
        return [{label: size} for size in range(2, min(counts[label], limit) + 1)]
    first, second = chosen
    return [
        {first: a, second: b}
        for a in range(2, min(counts[first], limit // 2) + 1)
        for b in range(2, min(counts[second], limit // a) + 1)
    ]


def _time(
    counts: Mapping[int, int], tiles: Mapping[int, int], uses: Sequence[set[int]], machine: Machine
) -> float:
    """Cycles for one step of the summed labels, over the whole output."""
    pieces: list[dict[int, int]] = [{}]
    repeats = [1.0]
    for label, tile in tiles.items():
        whole, rest = divmod(counts[label], tile)
        parts = [(tile, whole)] + ([(rest, 1)] if rest else [])
        repeats = [r * n for r in repeats for _, n in parts]
        pieces = [{**piece, label: size} for piece in pieces for size, _ in parts]
    total = 0.0
    for piece, repeat in zip(pieces, repeats, strict=True):
        size = prod(piece.values())
        loads = sum(_loads(piece, uses))
        cycles = max(
            size / machine.multiply_adds, (loads + 1) / machine.loads, float(machine.latency)
        )
        total += repeat * (cycles + 0.5)
    return total * prod(count for label, count in counts.items() if label not in tiles)


def _loads(tiles: Mapping[int, int], uses: Sequence[set[int]]) -> list[int]:
    """Of each operand, in one step of a tile."""
    return [prod(n for label, n in tiles.items() if label in used) for used in uses]
