"""Ways to run consecutive layers as a cascade: the heights of their strips, and what each way
costs.

A *turned* buffer has only the rows that one strip reads (see ``rows.RowRing``).  Whatever does not
depend on which activations are wholly on chip is computed once.
"""

from collections.abc import Mapping, Sequence, Set

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen, replace
from dovetail.isa.memories import Memory, Unit

from .cascade import Sized, sized
from .chain import UNITS
from .image import image_reads
from .items import Item
from .layer_run import turned_words
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .model import RowCosts, Traffic
from .rows import Reader, RowRing
from .schedules import divisors
from .strips import Stripes, stripes_of

__all__ = ["CascadeSizes"]

STRIP_CYCLES = 16
"""Estimate: what one more strip of a layer costs."""

WAITING = 5
"""Estimate: where buffers have no row to spare, this part (one in so many) of the work of the
second busiest of matrix core, vector unit and DRAM is not hidden.  For 125 cascades of nine
networks for images of 224x224, the estimated cycles were within 11 % (root of the mean square).
"""

MOST_HEIGHTS = 8
"""Heights of the last layer's strips that are tried, at most."""


@frozen
class _Shape:
    """A cascade before it is known which activations are wholly on chip.

    rows: of a strip of each layer.  strips: how many each layer has.  rings: buffers of all
    activations.
    busy: cycles of each unit.
    late: cycles of the busier unit, with those in which it waits for rows.
    filling: cycles of the first strips, and what each strip costs.
    again: how often constants are loaded of which not all stay on chip.
    """

    rows: tuple[int, ...]
    strips: tuple[int, ...]
    rings: Mapping[str, RowRing]
    busy: Mapping[Unit, int]
    late: int
    filling: int
    again: int


class CascadeSizes:
    """The ways to run consecutive layers as a cascade; remembers what it found.

    stripes: of each layer; None where it cannot run strip by strip.
    """

    def __init__(
        self,
        layers: Sequence[LoweredLayer],
        items: Sequence[Item],
        results: frozenset[str],
        config: HardwareConfig,
    ) -> None:
        """``results``: names of the activations that are stored in any case."""
        self.stripes = [stripes_of(layer, config) for layer in layers]
        self._makers: dict[str, list[int]] = {}
        for number, layer in enumerate(layers):
            self._makers.setdefault(layer.output.name, []).append(number)
        self._last = {item.activation.name: item.last for item in items}
        self._results, self._config, self._rows = results, config, RowCosts(config)
        self._shapes: dict[tuple[int, int], list[_Shape]] = {}
        self._sizes: dict[tuple[int, int, frozenset[str], bool], list[Sized]] = {}
        self._turned_shapes: dict[tuple[int, int, frozenset[str]], _Shape] = {}
        self._narrow: dict[tuple[int, int, frozenset[str]], list[Sized]] = {}

    def sizes(
        self, first: int, last: int, gone: frozenset[str], *, waits: bool = False
    ) -> list[Sized]:
        """Ways to run the layers from number ``first`` to ``last``, all of which have stripes.

        The fastest comes first; each needs less of ACT, or moves less, than those before it.  There
        are none when constants do not fit.

        gone: the activations, of those that the layers touch, that are not wholly on chip.
        waits: whether to count cycles in which units wait for rows, and for constants that come
        again for each strip.
        """
        key = first, last, gone, waits
        if key not in self._sizes:
            if (first, last) not in self._shapes:
                self._shapes[first, last] = self._shaped(first, self._group(first, last))
            sizes = [
                self._size(shape, first, last, gone, waits=waits)
                for shape in self._shapes[first, last]
            ]
            found: list[Sized] = []
            for each in sorted(sizes, key=lambda each: (each.cycles, each.words)):
                if all(each.words < other.words or each.dram < other.dram for other in found):
                    found.append(each)
            self._sizes[key] = found
        return self._sizes[key]

    def turned(self, first: int, last: int, gone: frozenset[str]) -> Sized | None:
        """The way with strips of one row and turned buffers.

        None where no buffer can be turned, where TAP has no room for the taps of all layers, or
        where VECTOR is not busier than the matrix core: only VECTOR gains, by computing no row
        twice.
        """
        group = self._group(first, last)
        turnable = self._turnable(first, group) & gone
        gemm, vector = (sum(x.cycles[unit] for x in group) for unit in (Unit.GEMM, Unit.VECTOR))
        taps = sum(
            turned_words(x.layer.kernel) * x.output.blocks
            if x.turns in turnable
            else x.constants.get(Memory.TAP, 0)
            for x in group
        )
        if not turnable or vector <= gemm or taps > self._config.tap_depth:
            return None
        if not self.sizes(first, last, gone):
            return None
        found = self._turned(first, last, gone, turnable, waits=False)
        return found if found.turned else None

    def narrow(self, first: int, last: int, gone: frozenset[str]) -> list[Sized]:
        """As ``turned``, in a list, if that needs less of ACT than all of ``sizes``.

        Any unit may be the busier one then, and taps may come again for each strip.
        """
        key = first, last, gone
        if key not in self._narrow:
            sizes = self.sizes(first, last, gone, waits=True)
            turnable = self._turnable(first, self._group(first, last)) & gone
            found = []
            if sizes and turnable:
                found = [self._turned(first, last, gone, turnable, waits=True)]
            least = min((each.words for each in sizes), default=0)
            self._narrow[key] = [each for each in found if each.turned and each.words < least]
        return self._narrow[key]

    def _turned(
        self, first: int, last: int, gone: frozenset[str], turnable: Set[str], *, waits: bool
    ) -> Sized:
        key, group = (first, last, frozenset(turnable)), self._group(first, last)
        if key not in self._turned_shapes:
            self._turned_shapes[key] = _shape(group, first, (1,) * len(group), turnable)
        return self._size(self._turned_shapes[key], first, last, gone, waits=waits)

    def _size(
        self, shape: _Shape, first: int, last: int, gone: frozenset[str], *, waits: bool
    ) -> Sized:
        constants = _constant_words(self._group(first, last))
        streamed = {name: self._last[name] > last or name in self._results for name in gone}
        return _sized(shape, first, streamed, constants, self._config, self._rows, waits=waits)

    def _group(self, first: int, last: int) -> list[Stripes]:
        return [each for each in self.stripes[first : last + 1] if each is not None]

    def _shaped(self, first: int, stripes: Sequence[Stripes]) -> list[_Shape]:
        """Every way that is tried; none when constants do not fit."""
        config, words = self._config, _constant_words(stripes)
        words[Memory.PAR] = words.get(Memory.PAR, 0) + sum(each.row_words for each in stripes)
        if not self._has_whole_parts(first, stripes):
            return []
        if any(words.get(memory, 0) > config.depth(memory) for memory in (Memory.PAR, Memory.TAB)):
            return []
        if any(2 * each.part[1] > config.depth(each.part[0]) for each in stripes if each.part):
            return []
        tried = dict.fromkeys(
            tuple(_heights(stripes, height))
            for height in divisors(stripes[-1].output.height)[:MOST_HEIGHTS]
        )
        tried[(1,) * len(stripes)] = None
        return [_shape(stripes, first, rows) for rows in tried]

    def _has_whole_parts(self, first: int, stripes: Sequence[Stripes]) -> bool:
        """True if these layers make all parts of each activation that they make any part of, and
        read it only when all are made.
        """
        end = first + len(stripes)
        for number, each in enumerate(stripes, first):
            for name in each.reads:
                makers = self._makers.get(name, ())
                if any(number <= maker < end for maker in makers):
                    return False
            makers = self._makers[each.output.name]
            if not all(first <= maker < end for maker in makers):
                return False
        return True

    def _turnable(self, first: int, stripes: Sequence[Stripes]) -> frozenset[str]:
        """Activations made here whose only reader can turn its taps, so their buffers may be
        turned.
        """
        made = {each.output.name for each in stripes}
        return frozenset(
            each.turns
            for number, each in enumerate(stripes)
            if each.turns in made
            and self._last[each.turns] == first + number
            and len(self._makers[each.turns]) == 1
            and each.turns not in self._results
            and sum(each.turns in other.reads for other in stripes) == 1
        )


def _constant_words(stripes: Sequence[Stripes]) -> dict[Memory, int]:
    words: dict[Memory, int] = {}
    for each in stripes:
        for memory, count in each.constants.items():
            words[memory] = words.get(memory, 0) + count
    return words


def _heights(stripes: Sequence[Stripes], height: int) -> list[int]:
    """Rows of each layer's strip: as many as a strip of the later layers reads, if sums fit."""
    wanted = {stripes[-1].output.name: height}
    rows: list[int] = []
    for each in reversed(stripes):
        output = each.output
        most = wanted.get(output.name, height)
        if each.most_pixels is not None:
            most = min(most, max(1, each.most_pixels // output.width))
        size = max(d for d in range(1, max(most, 1) + 1) if output.height % d == 0)
        rows.insert(0, size)
        for name, (_, step, _) in each.reads.items():
            wanted[name] = max(wanted.get(name, 1), step * size)
    return rows


def _shape(
    stripes: Sequence[Stripes],
    first: int,
    rows: tuple[int, ...],
    turnable: Set[str] = frozenset(),
) -> _Shape:
    strips = [each.output.height // count for each, count in zip(stripes, rows, strict=True)]
    made: dict[str, tuple[int, ...]] = {}
    for number, each in enumerate(stripes, first):
        made[each.output.name] = *made.get(each.output.name, ()), number
    readers: dict[str, list[Reader]] = {}
    activations: dict[str, Activation] = {
        each.output.name: each.output.all_channels for each in stripes
    }
    for number, each in enumerate(stripes):
        for x in dict.fromkeys(each.layer.inputs):
            if x.name in each.reads:
                start, step, length = each.reads[x.name]
                length += step * (rows[number] - 1)
                reader = Reader(first + number, start, step * rows[number], length, strips[number])
                readers.setdefault(x.name, []).append(reader)
                activations[x.name] = x.all_channels
    rings = {
        name: RowRing(x, x.rows, 0, tuple(readers.get(name, ())), made.get(name, ()))
        for name, x in activations.items()
    }
    busy = {unit: sum(each.cycles[unit] for each in stripes) for unit in UNITS}
    late = max(_late_cycles(stripes, rows, number) for number in range(len(stripes)))
    filling = sum(
        max(each.cycles.values()) // count for each, count in zip(stripes, strips, strict=True)
    )
    filling += STRIP_CYCLES * sum(strips)
    rings = sized(first, strips, rows, rings, turnable)
    return _Shape(rows, tuple(strips), rings, busy, late, filling, max(strips))


def _late_cycles(stripes: Sequence[Stripes], rows: Sequence[int], number: int) -> int:
    """Cycles of the busier unit before layer ``number`` may begin, and after that.

    In a low image its first strip may read most rows, and all that these depend on comes first.
    The first strip of each layer before is left out: ``filling`` counts those.
    """
    wanted = {x: stripes[number].first_rows(x, rows[number]) for x in stripes[number].reads}
    before = dict.fromkeys(UNITS, 0)
    for each, count in zip(reversed(stripes[:number]), reversed(rows[:number]), strict=True):
        made = wanted.get(each.output.name, 0)
        if not made:
            continue
        made = -(-made // count) * count
        for name in each.reads:
            wanted[name] = max(wanted.get(name, 0), each.first_rows(name, made))
        for unit in UNITS:
            before[unit] += each.cycles[unit] * (made - count) // each.output.height
    after = (sum(each.cycles[unit] for each in stripes[number:]) for unit in UNITS)
    return max(before.values()) + max(after)


def _sized(
    shape: _Shape,
    first: int,
    streamed: Mapping[str, bool],
    constants: Mapping[Memory, int],
    config: HardwareConfig,
    costs: RowCosts,
    *,
    waits: bool,
) -> Sized:
    """The cost of ``shape``.

    Cycles are those of the busiest of matrix core, vector unit and DRAM, of the first strips, and
    what each strip costs.

    streamed: the activations that are not wholly on chip; true where these layers make one that
    later layers read too, or that is a result.
    waits: count also the cycles in which units wait for rows, and for constants that come again for
    each strip, behind the rows that are loaded; and, where buffers are turned, some of the second
    busiest.
    """
    rings: dict[str, RowRing] = {}
    for name, ring in shape.rings.items():
        if name in streamed:
            stored = streamed[name] and bool(ring.producers)
            rings[name] = replace(ring, stored=True) if stored else ring
        elif ring.producers:
            rings[name] = replace(ring, depth=ring.activation.rows, mirror=0, kept=True)
    traffic = Traffic(config, costs)
    for ring in rings.values():
        x = ring.activation
        row = x.width * config.word_bytes(Memory.ACT)
        if not ring.kept and not ring.producers:
            count = max(reader.strips for reader in ring.readers)
            read = x.blocks * x.height * (1 + ring.mirror / ring.depth)
            if x.image:
                turns, row = image_reads(x.image, config)
                read, count = read * turns, count * turns * x.blocks
            traffic.read(read, row, count)
        elif ring.stored:
            traffic.write(x.blocks * x.height, row, shape.strips[ring.producers[0] - first])
    rows, waiting = traffic.read_cycles, 0
    for memory, count in constants.items():
        fits = count <= config.depth(memory)
        waiting = int(rows) if waits and not fits else waiting
        traffic.read(1 if fits else shape.again, count * config.word_bytes(memory))
    words = sum(ring.words for ring in rings.values() if not ring.kept)
    busy = max(shape.late if waits else 0, *shape.busy.values())
    second, most = sorted((*shape.busy.values(), traffic.cycles))[1:]
    cycles = max(most, busy + waiting) + shape.filling
    if waits and any(ring.turned for ring in rings.values()):
        cycles += second // WAITING
    return Sized(shape.rows, rings, words, cycles, traffic.dram_cycles)
