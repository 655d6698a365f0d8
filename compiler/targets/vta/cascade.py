"""Consecutive layers that run strip by strip, with only some rows of what lies between on chip.

A strip of a layer runs as soon as the rows it reads are there; those are made, or loaded, on
demand.  So an activation that would not fit, or not beside the others, never goes to DRAM when all
its readers are in the cascade, and otherwise each row of it is moved once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from .rows import Reader, RowRing, mirror_rows
from .stream import StreamedLayer

__all__ = ["Cascade", "Fetch", "Fill", "Put", "Step", "Work", "sized"]


@dataclass(frozen=True, slots=True)
class Fetch:
    """Load ``count`` rows from ``first`` on."""

    name: str
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Fill:
    """Give ``count`` rows of the halo, from ``first`` on, their value."""

    name: str
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Work:
    """Run strip ``strip`` of layer ``layer``."""

    layer: int
    strip: int


@dataclass(frozen=True, slots=True)
class Put:
    """Store ``count`` rows from ``first`` on."""

    name: str
    first: int
    count: int


Step = Fetch | Fill | Work | Put


@dataclass(frozen=True)
class Cascade:
    """Layers ``first`` and following; ``strips``: how many of each layer, ``rows``: rows of each.

    rings: the buffers, by the name of their activation; of activations that are wholly on chip
    those that the cascade makes.  cycles: what it is expected to take.
    """

    first: int
    layers: tuple[StreamedLayer, ...]
    strips: tuple[int, ...]
    rows: tuple[int, ...]
    rings: Mapping[str, RowRing]
    cycles: int

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Everything in an order in which it could run one after the other."""
        return tuple(_Steps(self.first, self.strips, self.rows, self.rings).all())


class _Steps:
    """On demand of the last layer: its strips, and before each what it needs."""

    def __init__(
        self,
        first: int,
        strips: Sequence[int],
        rows: Sequence[int],
        rings: Mapping[str, RowRing],
    ) -> None:
        self._first, self._strips, self._rows, self._rings = first, strips, rows, rings
        self.done = {first + number: 0 for number in range(len(strips))}
        self.made = dict.fromkeys(rings, 0)
        """Strips of each layer, and rows of each activation, so far."""
        self._made_by = {ring.producer: name for name, ring in rings.items()}
        self._reads: dict[int, list[tuple[str, Reader]]] = {number: [] for number in self.done}
        for name, ring in rings.items():
            for reader in ring.readers:
                self._reads[reader.layer].append((name, reader))

    def all(self) -> Iterator[Step]:
        """All steps; what nobody reads comes last."""
        for layer in reversed(self.done):
            while self.done[layer] < self._strips[layer - self._first]:
                yield from self._work(layer)

    def _work(self, layer: int) -> Iterator[Step]:
        strip = self.done[layer]
        for name, reader in self._reads[layer]:
            yield from self._need(name, reader.start(strip) + reader.length)
        self.done[layer] += 1
        result = self._made_by.get(layer)
        if result is None:
            yield Work(layer, strip)
            return
        ring, rows = self._rings[result], self._rows[layer - self._first]
        first = ring.activation.halo[0] + strip * rows
        self.made[result] = first + rows
        yield Work(layer, strip)
        if ring.stored:
            yield Put(result, first, rows)

    def _need(self, name: str, end: int) -> Iterator[Step]:
        """What makes the rows before ``end``."""
        ring = self._rings[name]
        x = ring.activation
        top, bottom = x.halo[0], x.halo[0] + x.height
        assert end <= x.rows, f"{name} has {x.rows} rows; {end} are read"
        while self.made[name] < end:
            made = self.made[name]
            if ring.producer is None:
                self.made[name] = end
                yield Fetch(name, made, end - made)
            elif made < top or made >= bottom:
                self.made[name] = top if made < top else x.rows
                yield Fill(name, made, self.made[name] - made)
            else:
                yield from self._work(ring.producer)


def sized(
    first: int, strips: Sequence[int], rows: Sequence[int], rings: Mapping[str, RowRing]
) -> dict[str, RowRing]:
    """``rings`` just deep enough, and for one more strip to be made while the others are read.

    Those that are kept are not changed.
    """
    steps = _Steps(first, strips, rows, rings)
    made = dict(steps.made)
    deepest = dict.fromkeys(rings, 0)
    largest = dict.fromkeys(rings, 0)
    for _ in steps.all():
        for name, ring in rings.items():
            if steps.made[name] == made[name]:
                continue
            needed = (
                reader.start(steps.done[reader.layer])
                for reader in ring.readers
                if steps.done[reader.layer] < reader.strips
            )
            lowest = min(needed, default=made[name])
            deepest[name] = max(deepest[name], steps.made[name] - min(lowest, made[name]))
            largest[name] = max(largest[name], steps.made[name] - made[name])
            made[name] = steps.made[name]
    return {
        name: ring if ring.kept else _deep(ring, deepest[name] + largest[name])
        for name, ring in rings.items()
    }


def _deep(ring: RowRing, depth: int) -> RowRing:
    """``ring`` of at least ``depth`` rows: whole strips of its readers, or all rows."""
    step = max((reader.step for reader in ring.readers), default=0) or 1
    depth = min(-(-depth // step) * step, ring.activation.rows)
    return replace(ring, depth=depth, mirror=mirror_rows(ring.readers, depth))
