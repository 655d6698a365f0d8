"""Consecutive layers that run strip by strip, with only some rows of what is between on chip.

A strip of a layer runs as soon as the rows it reads are there; those are made, or loaded, on
demand.  An activation that would not fit, or not with the others, therefore never goes to DRAM
when all its readers are in the cascade; otherwise each row of it is moved once.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from dovetail.isa.frozen import frozen, replace

from .rows import Reader, RowRing, mirror_rows
from .stream import StreamedLayer

__all__ = ["Cascade", "Fetch", "Fill", "Put", "Sized", "Step", "Work", "sized"]


@frozen
class Fetch:
    """Load ``count`` rows from ``first`` on."""

    name: str
    first: int
    count: int


@frozen
class Fill:
    """Give ``count`` rows of the halo, from ``first`` on, their value."""

    name: str
    first: int
    count: int


@frozen
class Work:
    """Run strip ``strip`` of layer ``layer``."""

    layer: int
    strip: int


@frozen
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
        return tuple(_Steps(self.first, self.strips, self.rows, self.rings).list)


@frozen
class Sized:
    """rows: of a strip of each layer.  words: of ACT, for the buffers that are not kept.  dram: of
    ``cycles``, those in which DRAM works.  more: of each buffer, strips of its readers that it has
    room for beyond what they need; nothing where none has any.
    """

    rows: tuple[int, ...]
    rings: Mapping[str, RowRing]
    words: int
    cycles: int
    dram: int
    more: tuple[int, ...] = ()

    @property
    def turned(self) -> bool:
        """True if one of the buffers is."""
        return any(ring.turned for ring in self.rings.values())

    def deeper(self, more: Sequence[int]) -> "Sized":
        """With room for so many more strips in each buffer, in their order."""
        rings = {
            name: ring if ring.turned else _whole_steps(ring, ring.depth + count * _step(ring))
            for (name, ring), count in zip(self.rings.items(), more, strict=True)
        }
        words = sum(ring.words for ring in rings.values() if not ring.kept)
        before = self.more or (0,) * len(rings)
        added = tuple(a + b for a, b in zip(before, more, strict=True))
        return replace(self, rings=rings, words=words, more=added)


class _Steps:
    """Steps on demand of the last layer: its strips, and before each strip what it needs.

    list: everything in turn.  deepest: rows of each activation that are needed at one time at most.
    depth: those, and room for one more strip to be made while the others are read.
    """

    def __init__(
        self,
        first: int,
        strips: Sequence[int],
        rows: Sequence[int],
        rings: Mapping[str, RowRing],
    ) -> None:
        self._first, self._rows, self._rings = first, rows, rings
        self._done = {first + number: 0 for number in range(len(strips))}
        self._made = dict.fromkeys(rings, 0)
        """Strips of each layer, and rows of each activation, so far."""
        self._made_by = {each: name for name, ring in rings.items() for each in ring.producers}
        self._reads: dict[int, list[tuple[str, Reader]]] = {number: [] for number in self._done}
        for name, ring in rings.items():
            for reader in ring.readers:
                self._reads[reader.layer].append((name, reader))
        self.deepest, self._largest = dict.fromkeys(rings, 0), dict.fromkeys(rings, 0)
        self.list: list[Step] = []
        # What nobody reads comes last.
        for layer in reversed(self._done):
            while self._done[layer] < strips[layer - first]:
                self._work(layer)
        self.depth = {name: self.deepest[name] + self._largest[name] for name in rings}

    def _work(self, layer: int) -> None:
        strip = self._done[layer]
        for name, reader in self._reads[layer]:
            self._need(name, reader.start(strip) + reader.length)
        result = self._made_by[layer]
        ring = self._rings[result]
        first = self._ends(ring)[0]
        self._done[layer] += 1
        last, highest = self._ends(ring)
        self._note(result, max(last, self._made[result]), highest)
        self.list.append(Work(layer, strip))
        if ring.stored and last > first:
            self.list.append(Put(result, first, last - first))

    def _ends(self, ring: RowRing) -> tuple[int, int]:
        """The rows before which all producers of a ring have made theirs, and any of them has."""
        ends = [self._rows_done(each) for each in ring.producers]
        top = ring.activation.halo[0]
        return top + min(ends), top + max(ends)

    def _need(self, name: str, end: int) -> None:
        """Do what makes the rows before ``end``."""
        ring = self._rings[name]
        x = ring.activation
        top, bottom = x.halo[0], x.halo[0] + x.height
        assert end <= x.rows, f"{name} has {x.rows} rows; {end} are read"
        while (made := self._made[name]) < end:
            if not ring.producers:
                self._note(name, end, end)
                self.list.append(Fetch(name, made, end - made))
            elif made < top or made >= bottom:
                until = top if made < top else end
                self._note(name, until, until)
                self.list.append(Fill(name, made, until - made))
            else:
                self._work(min(ring.producers, key=self._rows_done))

    def _rows_done(self, layer: int) -> int:
        return self._done[layer] * self._rows[layer - self._first]

    def _note(self, name: str, end: int, highest: int) -> None:
        """The rows of an activation before ``end`` are there, and parts of those before
        ``highest``.
        """
        made, lowest = self._made[name], self._made[name]
        for reader in self._rings[name].readers:
            done = self._done[reader.layer]
            if done < reader.strips:
                lowest = min(lowest, reader.start(done))
        self.deepest[name] = max(self.deepest[name], highest - lowest)
        self._largest[name] = max(self._largest[name], highest - made)
        self._made[name] = end


def sized(
    first: int,
    strips: Sequence[int],
    rows: Sequence[int],
    rings: Mapping[str, RowRing],
    turnable: Set[str] = frozenset(),
) -> dict[str, RowRing]:
    """``rings`` just deep enough, and for one more strip to be made while the others are read; of
    ``turnable``, those that may then be turned have the rows that a strip reads.
    """
    steps = _Steps(first, strips, rows, rings)
    found = {name: _whole_steps(ring, steps.depth[name]) for name, ring in rings.items()}
    for name in turnable:
        (reader,) = rings[name].readers
        if steps.deepest[name] == reader.length < found[name].depth:
            found[name] = replace(rings[name], depth=reader.length, mirror=0, turned=True)
    return found


def _whole_steps(ring: RowRing, depth: int) -> RowRing:
    """``ring`` of at least ``depth`` rows: whole strips of its readers, or all rows."""
    step = _step(ring)
    depth = min(-(-depth // step) * step, ring.activation.rows)
    return replace(ring, depth=depth, mirror=mirror_rows(ring.readers, depth))


def _step(ring: RowRing) -> int:
    """Rows from one strip of its readers to the next, at most."""
    return max((reader.step for reader in ring.readers), default=0) or 1
