"""How a sum of products is cut for registers: which loop is in lanes, which are unrolled.

A tile of the results is kept in registers while the sum runs.  Each step loads, for every operand,
one vector or one scalar for each combination of the tiled loops that the operand depends on, and
does one multiply-add for each element of the tile; the tile is chosen for few loads.
"""

from collections.abc import Mapping, Sequence
from math import prod

from dovetail.isa.frozen import frozen, replace

from ....dtypes import DType
from .machine import Machine
from .products import Axis, Products

__all__ = ["Tiling", "choose_rows", "choose_tiling"]

STREAMS = 12
"""Registers where lanes are along the sum: each row is read from end to end, and too many rows at
a time push each other out of the cache."""


MOST_ROWS = 8
"""Windows of a tile that are computed with all their taps unrolled."""


LEAST_WORK = 1 << 15
"""Products of a sum whose tiles threads share."""


@frozen
class Tiling:
    """vector: the label that is in lanes; None for scalars.  It may be a summed one.

    lanes: their number.  tiles: how many values of a label, or vectors of the vector label, are
    in a tile.
    """

    vector: str | None
    lanes: int
    tiles: Mapping[str, int]


def choose_tiling(products: Products, machine: Machine) -> Tiling:
    """The tiling of least estimated time."""
    vector = _vector_label(products)
    lanes = 1
    if vector is not None:
        lanes = max(min(machine.vector_bytes // _width(products.dtype), products.sizes[vector]), 1)
    counts = {
        label: products.sizes[label] if label != vector else -(-products.sizes[label] // lanes)
        for label in products.kept
    }
    uses = [
        _Use.of(products, axes, vector, lanes, machine.streamed_bytes) for axes in products.operands
    ]
    everything = prod(counts.values())
    if vector in products.summed:
        machine = replace(machine, registers=min(machine.registers, STREAMS))
    useful = [label for label in reversed(products.kept) if counts[label] > 1]
    work = everything * lanes * prod(products.sizes[label] for label in products.summed)
    threads = machine.threads if work >= LEAST_WORK else 1
    best: dict[str, int] = {}
    best_time = everything * _cycles(1, 1, [(False, False, use.bytes) for use in uses], machine)
    for first, second in ((x, y) for x in useful for y in (None, *useful) if x != y):
        pairs = [(first in use.labels, second in use.labels, use.bytes) for use in uses]
        one, other = counts[first], 1 if second is None else counts[second]
        rest = everything // (one * other)
        for tile in range(2, min(one, machine.registers) + 1):
            for size in _seconds(second, tile, other, machine):
                if not _fits(tile, size, pairs, machine):
                    continue
                pieces = _pieces(one, tile), _pieces(other, size)
                time = _time(rest, pieces, pairs, machine, threads)
                chosen = {first: tile} if second is None else {first: tile, second: size}
                time += _waiting(chosen, counts, uses, machine)
                if time < best_time * 0.999:
                    best, best_time = chosen, time
    return Tiling(vector, lanes, best)


def choose_rows(products: Products, machine: Machine) -> Tiling:
    """A tile of neighbouring windows, whose common elements are read once; all taps are unrolled.

    The tiled label is the one of the most distant windows, usually rows.
    """
    vector = _vector_label(products)
    assert vector is not None
    lanes = machine.vector_bytes // _width(products.dtype)
    windows = [axis for axes in products.operands for axis in axes if len(axis) > 1]
    sliding = [(label, step, axis) for axis in windows for label, step in axis[:1]]
    if not sliding or products.sizes[sliding[0][0]] < 2:
        return Tiling(vector, lanes, {})
    label, step, axis = sliding[0]
    own = prod(products.sizes[each] for each, _ in axis[1:])
    reach = products.extent(axis) - step * (products.sizes[label] - 1)

    def read(tile: int) -> int:
        """Elements, of which neighbouring windows share some."""
        pieces = _pieces(products.sizes[label], tile)
        return sum(count * min(own * size, reach + step * (size - 1)) for size, count in pieces)

    most = min(products.sizes[label], MOST_ROWS)
    return Tiling(vector, lanes, {label: min(range(2, most + 1), key=read)})


@frozen
class _Use:
    """An operand's labels, and the bytes it loads for each combination of them.

    streamed: it is too large to stay in the cache, and the only one with the lanes.
    """

    labels: frozenset[str]
    bytes: int
    streamed: bool

    @staticmethod
    def of(
        products: Products,
        axes: Sequence[Axis],
        vector: str | None,
        lanes: int,
        streamed_bytes: int,
    ) -> "_Use":
        labels = frozenset(label for axis in axes for label, _ in axis)
        width = _width(products.dtype)
        own = sum(vector in other for other in products.labels)
        streamed = (
            vector in labels and own == 1 and products.elements(axes) * width >= streamed_bytes
        )
        return _Use(labels, width * (lanes if vector in labels else 1), streamed)


def _waiting(
    tiles: Mapping[str, int], counts: Mapping[str, int], uses: Sequence[_Use], machine: Machine
) -> float:
    """Cycles of a step of the summed labels in which what is streamed has not come yet.

    The part for a tile comes while the tile before it is computed for the first time; at other
    values of labels that the operand does not depend on, it is in the cache.
    """
    total = 0.0
    pairs = [_pair(tiles, use) for use in uses]
    for use in uses:
        if use.streamed:
            parts = prod(tiles.get(label, 1) for label in use.labels)
            values = prod(counts[label] for label in counts if label in use.labels)
            first, second = (*tiles.values(), 1)[:2]
            wait = parts * use.bytes / machine.memory_bytes - _cycles(first, second, pairs, machine)
            total += values / parts * max(0.0, wait)
    return total


def _pair(tiles: Mapping[str, int], use: _Use) -> tuple[bool, bool, int]:
    first, second = (*(label in use.labels for label in tiles), False)[:2]
    return first, second, use.bytes


Pairs = Sequence[tuple[bool, bool, int]]
"""For each operand: whether it depends on the first tiled label, on the second, and its bytes."""


def _seconds(label: str | None, tile: int, count: int, machine: Machine) -> range:
    """Sizes to try of the second tiled label."""
    return range(1, 2) if label is None else range(2, min(count, machine.registers // tile) + 1)


def _loads(first: int, second: int, pairs: Pairs) -> list[int]:
    """Loads of each operand in one step of a tile."""
    return [(first if one else 1) * (second if other else 1) for one, other, _ in pairs]


def _fits(first: int, second: int, pairs: Pairs, machine: Machine) -> bool:
    """True if the tile, the operand with fewer loads and one load more are in registers."""
    return first * second + min(_loads(first, second, pairs)) + 1 <= machine.registers


def _width(dtype: DType) -> int:
    return max(dtype.bytes, 4)


def _vector_label(products: Products) -> str | None:
    """The last label of the output that every operand has contiguous, or not at all.

    Else a summed one of this kind.
    """
    candidates = (*reversed(products.kept), *reversed(products.summed))
    for label in candidates:
        found = [_contiguous(axes, label) for axes in products.operands]
        if products.sizes[label] > 1 and all(each is not False for each in found) and any(found):
            return label
    return None


def _contiguous(axes: Sequence[Axis], label: str) -> bool | None:
    """True if neighbouring values of a label are neighbours in memory; None if it is not used."""
    places = [
        (place, step) for place, axis in enumerate(axes) for own, step in axis if own == label
    ]
    if not places:
        return None
    return places == [(len(axes) - 1, 1)]


Pieces = tuple[tuple[int, int], ...]
"""Sizes of tiles along a label, and how often they come."""


def _time(
    rest: int, pieces: tuple[Pieces, Pieces], pairs: Pairs, machine: Machine, threads: int
) -> float:
    """Cycles for one step of the summed labels, over all values of both tiled labels, ``rest``
    times; where there are fewer tiles than threads, the idle threads count too.
    """
    total = 0.0
    for first, repeats in pieces[0]:
        for second, times in pieces[1]:
            tiles = max(rest * repeats * times, threads)
            total += tiles * _cycles(first, second, pairs, machine)
    return total


def _pieces(count: int, tile: int) -> Pieces:
    """Tiles of ``tile``, and one of what is left."""
    whole, rest = divmod(count, tile)
    return ((tile, whole), (rest, 1)) if rest else ((tile, whole),)


def _cycles(first: int, second: int, pairs: Pairs, machine: Machine) -> float:
    """Cycles of one step of one tile; half of one goes to the loop."""
    loads = _loads(first, second, pairs)
    data = sum(count * own for count, (_, _, own) in zip(loads, pairs, strict=True))
    return 0.5 + max(
        first * second / machine.multiply_adds,
        (sum(loads) + 1) / machine.loads,
        data / machine.cache_bytes,
        machine.latency,
    )
