"""Which layers can run strip by strip, how high a strip of each is, and what it costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory, Unit

from ...loops.expressions import Scope
from .cascade import Cascade, sized
from .image import image_reads
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .layers.lower import ADDEND
from .model import Traffic, unit_cycles
from .nest import Kernel, Ref, Total
from .rows import Reader, RowRing
from .schedules import Grain, Tiling
from .stream import StreamedLayer
from .windows import SLOTS

__all__ = ["Sized", "Stripes", "cascade_sizes", "scheduled_cascade", "stripes_of"]

CONSTANTS = {
    "weights": Memory.WGT,
    "taps": Memory.TAP,
    "bias": Memory.PAR,
    "add_bias": Memory.PAR,
    "table": Memory.TAB,
}
"""Constants that stay on chip while a cascade runs."""

PARTS = ("weights", "taps")
"""Constants of which a tile has only its part."""

FOLDED_ITERATIONS = 1024
"""Iterations of one VECTOR instruction that folds, at most if it can be: it holds up others."""

STRIP_CYCLES = 16
"""Estimate: what one more strip of a layer costs."""

MOST_HEIGHTS = 8
"""Heights of the last layer's strips that are tried, at most."""


@dataclass(frozen=True, slots=True)
class Stripes:
    """A layer that can run strip by strip.

    reads: of each activation, the first row that output row 0 reads, the rows from one output row
    to the next, and how many each reads.
    """

    layer: LoweredLayer
    reads: Mapping[str, tuple[int, int, int]]
    cycles: Mapping[Unit, int]
    constants: Mapping[Memory, int]
    """Words of each memory for constants."""
    part: tuple[Memory, int] | None
    """Words of WGT or TAP for one block of output channels."""

    @property
    def output(self) -> Activation:
        """What it makes."""
        return self.layer.output


def stripes_of(layer: LoweredLayer, config: HardwareConfig) -> Stripes | None:
    """``layer`` by rows; None when it cannot be cut so, or waits for all of another activation."""
    kernel = layer.kernel
    if layer.stored is not None or kernel.by_rows:
        return None
    if any(x.whole_channels is not None for x in (*layer.inputs, layer.output)):
        return None
    names = {activation.name for activation in layer.inputs}
    reads: dict[str, tuple[int, int, int]] = {}
    for nest in kernel.nests:
        if nest.extents.get("y") != layer.output.height:
            return None
        for ref in nest.refs:
            if ref.buffer.name in names:
                rows = _rows(ref, nest.extents)
                if rows is None or reads.setdefault(ref.buffer.name, rows) != rows:
                    return None
    constants: dict[Memory, int] = {}
    part: tuple[Memory, int] | None = None
    for name, memory in CONSTANTS.items():
        if name in layer.constants:
            array, lanes = layer.constants[name], config.lanes(memory)
            constants[memory] = constants.get(memory, 0) + array.size // lanes
            if name in PARTS:
                part = memory, array[0].size // lanes
    return Stripes(layer, reads, unit_cycles(kernel, config), constants, part)


def _rows(ref: Ref, extents: dict[str, int]) -> tuple[int, int, int] | None:
    """First row of output row 0, rows a step, which may be 0, and rows read; None when they move
    otherwise.
    """
    if len(ref.indices) != 4:
        return None
    if any(index.coefficient("y") for index in (ref.indices[0], *ref.indices[2:])):
        return None
    index = ref.indices[1]
    step = index.coefficient("y")
    low, high = index.limits(extents | {"y": 1})
    return (low, step, high - low + 1) if step >= 0 else None


@dataclass(frozen=True, slots=True)
class Sized:
    """rows: of a strip of each layer.  words: of ACT, for the buffers that are not kept.  dram: of
    ``cycles``, those in which DRAM works.
    """

    rows: tuple[int, ...]
    rings: Mapping[str, RowRing]
    words: int
    cycles: int
    dram: int


def cascade_sizes(
    stripes: Sequence[Stripes], first: int, streamed: Mapping[str, bool], config: HardwareConfig
) -> list[Sized]:
    """Ways to run the layers ``stripes``, the first of which is number ``first``, as a cascade.

    The fastest first; each needs less of ACT, or moves less, than those before.  None when
    constants do not fit.
    streamed: of the activations that are not wholly on chip, whether one that these layers make
    is read by later ones too, or is the result.
    """
    words = _constant_words(stripes)
    if any(words.get(memory, 0) > config.depth(memory) for memory in (Memory.PAR, Memory.TAB)):
        return []
    if any(2 * each.part[1] > config.depth(each.part[0]) for each in stripes if each.part):
        return []
    tried = dict.fromkeys(
        tuple(_heights(stripes, height, config))
        for height in _divisors(stripes[-1].output.height)[:MOST_HEIGHTS]
    )
    tried[(1,) * len(stripes)] = None
    sizes = [_sized(stripes, first, streamed, rows, config) for rows in tried]
    found: list[Sized] = []
    for each in sorted(sizes, key=lambda each: (each.cycles, each.words)):
        if all(each.words < other.words or each.dram < other.dram for other in found):
            found.append(each)
    return found


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _constant_words(stripes: Sequence[Stripes]) -> dict[Memory, int]:
    words: dict[Memory, int] = {}
    for each in stripes:
        for memory, count in each.constants.items():
            words[memory] = words.get(memory, 0) + count
    return words


def _sized(
    stripes: Sequence[Stripes],
    first: int,
    streamed: Mapping[str, bool],
    rows: tuple[int, ...],
    config: HardwareConfig,
) -> Sized:
    strips = [each.output.height // count for each, count in zip(stripes, rows, strict=True)]
    made = {each.output.name: first + n for n, each in enumerate(stripes)}
    readers: dict[str, list[Reader]] = {}
    activations = {each.output.name: each.output for each in stripes}
    for number, each in enumerate(stripes):
        for x in dict.fromkeys(each.layer.inputs):
            if x.name in streamed or x.name in made:
                start, step, length = each.reads[x.name]
                length += step * (rows[number] - 1)
                reader = Reader(first + number, start, step * rows[number], length, strips[number])
                readers.setdefault(x.name, []).append(reader)
                activations[x.name] = x
    rings = {
        name: RowRing(
            x,
            x.rows,
            0,
            tuple(readers.get(name, ())),
            made.get(name),
            streamed.get(name, False) and name in made,
            name not in streamed,
        )
        for name, x in activations.items()
    }
    rings = sized(first, strips, rows, rings)
    words = sum(ring.words for ring in rings.values() if not ring.kept)
    return Sized(rows, rings, words, *_cycles(stripes, first, strips, rings, config))


def _heights(stripes: Sequence[Stripes], height: int, config: HardwareConfig) -> list[int]:
    """Rows of a strip of each layer: what a strip of the layers after it reads, if sums fit."""
    wanted = {stripes[-1].output.name: height}
    rows: list[int] = []
    for each in reversed(stripes):
        output = each.output
        most = wanted.get(output.name, height)
        if _has_sums(each.layer.kernel):
            most = min(most, max(1, config.bank_words(Memory.ACC) // output.width))
        size = max(d for d in range(1, max(most, 1) + 1) if output.height % d == 0)
        rows.insert(0, size)
        for name, (_, step, _) in each.reads.items():
            wanted[name] = max(wanted.get(name, 1), step * size)
    return rows


def _has_sums(kernel: Kernel) -> bool:
    return any(ref.buffer.scope is Scope.ACC for ref in kernel.refs.values())


def _cycles(
    stripes: Sequence[Stripes],
    first: int,
    strips: Sequence[int],
    rings: Mapping[str, RowRing],
    config: HardwareConfig,
) -> tuple[int, int]:
    """The busiest of matrix core, vector unit and DRAM, the first strips, and each strip's cost;
    how much of it DRAM works.
    """
    busy = {unit: sum(each.cycles[unit] for each in stripes) for unit in (Unit.GEMM, Unit.VECTOR)}
    traffic = Traffic(config)
    for memory, count in _constant_words(stripes).items():
        again = 1 if count <= config.depth(memory) else max(strips)
        traffic.read(again, count * config.word_bytes(memory))
    for ring in rings.values():
        x = ring.activation
        row = x.width * config.word_bytes(Memory.ACT)
        if not ring.kept and ring.producer is None:
            count = max(reader.strips for reader in ring.readers)
            read = x.blocks * x.height * (1 + ring.mirror / ring.depth)
            if x.image:
                turns, row = image_reads(x.image, config)
                read, count = read * turns, count * turns * x.blocks
            traffic.read(read, row, count)
        elif not ring.kept and ring.stored and ring.producer is not None:
            traffic.write(x.blocks * x.height, row, strips[ring.producer - first])
    filling = sum(
        max(each.cycles.values()) // count for each, count in zip(stripes, strips, strict=True)
    )
    cycles = max(traffic.cycles, *busy.values()) + filling + STRIP_CYCLES * sum(strips)
    return cycles, traffic.dram_cycles


def scheduled_cascade(
    stripes: Sequence[Stripes], first: int, chosen: Sized, config: HardwareConfig, grain: Grain
) -> Cascade:
    """The cascade of one of ``cascade_sizes``."""
    planned = []
    for each, rows in zip(stripes, chosen.rows, strict=True):
        output = each.output
        windows = {}
        for x in each.layer.inputs:
            if x.name in chosen.rings and not chosen.rings[x.name].kept:
                start, step, _ = each.reads[x.name]
                windows[x.name] = chosen.rings[x.name].window(start, step * rows, "y.outer")
        if not chosen.rings[output.name].kept:
            ring = chosen.rings[output.name]
            windows[output.name] = ring.window(output.halo[0], rows, "y.outer")
        tiling = Tiling(_tile(each, rows, chosen.rings, config, grain), ("y", "x", "c"), SLOTS)
        planned.append(StreamedLayer(each.layer, tiling, windows))
    strips = tuple(
        each.output.height // rows for each, rows in zip(stripes, chosen.rows, strict=True)
    )
    return Cascade(first, tuple(planned), strips, chosen.rows, chosen.rings, chosen.cycles)


def _tile(
    each: Stripes, rows: int, rings: Mapping[str, RowRing], config: HardwareConfig, grain: Grain
) -> dict[str, int]:
    """The widest tile of a strip, then of the most channel blocks, whose sums fit in ACC."""
    kernel, extents = each.layer.kernel, each.layer.kernel.extents
    # Of a result that is wider than its loop, each iteration makes several columns.
    width = extents["x"]
    if _has_sums(kernel):
        most = config.bank_words(Memory.ACC)
    else:
        folded = prod(extents[name] for name in kernel.nests[-1].reduction if name in extents)
        most = max(FOLDED_ITERATIONS // max(folded, 1), rows * width)
    x = max(d for d in range(1, width + 1) if width % d == 0 and d * rows <= most)
    blocks = 1 if kernel.is_far or _uneven(each, rings) else max(1, most // (rows * x))
    if each.part:
        blocks = min(blocks, config.depth(each.part[0]) // 2 // each.part[1])
    blocks = max(1, min(blocks, extents["c"]) // grain.parts)
    c = max(d for d in range(1, blocks + 1) if extents["c"] % d == 0)
    return {"c": c, "y": rows, "x": x}


def _uneven(each: Stripes, rings: Mapping[str, RowRing]) -> bool:
    """Whether a sum's operands and result lie in buffers of different heights."""
    for nest in each.layer.kernel.nests:
        if isinstance(nest.value, Total):
            refs = (nest.value.left.ref, nest.value.right.ref)
            names = {ref.buffer.name for ref in refs} - {ADDEND}
            names |= {each.output.name} if ADDEND in {ref.buffer.name for ref in refs} else set()
            heights = set()
            for x in (*each.layer.inputs, each.output):
                if x.name in names:
                    ring = rings.get(x.name)
                    heights.add(ring.shape[1] if ring else x.rows)
            return len(heights) > 1
    return False
