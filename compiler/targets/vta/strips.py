"""Layers that can run strip by strip, and how they do."""

from collections.abc import Mapping, Sequence
from math import prod

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory, Unit

from ...loops.expressions import Scope
from .cascade import Cascade, Sized
from .grains import Grain
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .layers.lower import ADDEND
from .model import unit_cycles
from .nest import Kernel, Ref, Total
from .row_problems import STRIP_PARTS
from .rows import RowRing
from .schedules import Tiling
from .stream import StreamedLayer
from .windows import SLOTS

__all__ = ["Stripes", "scheduled_cascade", "stripes_of"]

CONSTANTS = {
    "weights": Memory.WGT,
    "taps": Memory.TAP,
    "bias": Memory.PAR,
    "add_bias": Memory.PAR,
    "row_bias": Memory.PAR,
    "table": Memory.TAB,
}
"""Constants that stay on chip while a cascade runs."""

PARTS = ("weights", "taps")
"""Constants of which a tile has only its part."""

SMALL = 32
"""Layers that touch parts of an activation of less than this part of ACT are not cut."""

FOLDED_ITERATIONS = 1024
"""Iterations of one VECTOR instruction that folds, at most where possible, since it holds up
others.
"""


@frozen
class Stripes:
    """A layer that can run strip by strip.

    reads: for each activation, the first row that output row 0 reads, the rows from one output row
    to the next, and how many rows each reads.
    """

    layer: LoweredLayer
    reads: Mapping[str, tuple[int, int, int]]
    cycles: Mapping[Unit, int]
    constants: Mapping[Memory, int]
    """Words of each memory for constants."""
    part: tuple[Memory, int] | None
    """Words of WGT or TAP for one block of output channels."""
    most_pixels: int | None
    """Most pixels of a tile, with as few channels as may be; None where it has no sums in ACC."""
    row_words: int
    """Words of PAR for parameters of rows that it makes."""
    turns: str | None
    """The activation whose rows may come in any order: the input of a layer whose taps may turn."""

    @property
    def output(self) -> Activation:
        """The activation that it makes."""
        return self.layer.output

    def first_rows(self, name: str, count: int) -> int:
        """Rows of input ``name``, from the first on, that its first ``count`` rows come from."""
        first, step, length = self.reads[name]
        x = next(each for each in self.layer.inputs if each.name == name)
        return max(0, min(x.height, first + step * (count - 1) + length - x.halo[0]))


def stripes_of(layer: LoweredLayer, config: HardwareConfig) -> Stripes | None:
    """``layer`` by rows; None when it cannot be cut so, or waits for all of another activation."""
    kernel = layer.kernel
    if layer.stored is not None or (kernel.by_rows and not _keeps_to_rows(layer)):
        return None
    if not all(_may_be_cut(x, config) for x in (*layer.inputs, layer.output)):
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
    pixels = _most_pixels(kernel, config)
    if pixels == 0:
        return None
    row_words = sum(nest.makes_row for nest in kernel.nests) * (pixels or 0)
    busy, turns = unit_cycles(kernel, config), _turns(layer, reads)
    return Stripes(layer, reads, busy, constants, part, pixels, row_words, turns)


def _keeps_to_rows(layer: LoweredLayer) -> bool:
    """True if a layer of rows keeps what it computes before its result in ACC and PAR, and loads
    its own constants.

    Its result is then the only thing that is elsewhere for each strip.
    """
    targets = (nest.target.buffer for nest in layer.kernel.nests)
    inside = all(each.scope is not Scope.ACT or each.name == layer.output.name for each in targets)
    return inside and layer.given is None


def _most_pixels(kernel: Kernel, config: HardwareConfig) -> int | None:
    """Most pixels of a tile whose sums fit in a bank of ACC, and whose parameters of rows fit in
    their part of PAR; None where it has neither.
    """
    if all(ref.buffer.scope is not Scope.ACC for ref in kernel.refs.values()):
        return None
    words = config.bank_words(Memory.ACC) // kernel.sum_words
    if not kernel.by_rows:
        return words
    return min(words // kernel.extents["c"], config.par_depth // STRIP_PARTS)


def _may_be_cut(x: Activation, config: HardwareConfig) -> bool:
    """True if ``x`` is whole, or some blocks of an image large enough for it to matter."""
    if x.whole_channels is None and x.grid is None:
        return True
    return x.grid is None and x.height > 1 and SMALL * x.whole.words >= config.act_depth


def _turns(layer: LoweredLayer, reads: Mapping[str, tuple[int, int, int]]) -> str | None:
    """The input of a depthwise layer whose windows skip no row."""
    kernel_h = layer.kernel.extents.get("ky", 1)
    if "taps" not in layer.constants or kernel_h == 1:
        return None
    if layer.inputs[0].whole_channels is not None:
        return None
    name = layer.inputs[0].name
    return name if reads[name][2] == kernel_h else None


def _rows(ref: Ref, extents: dict[str, int]) -> tuple[int, int, int] | None:
    """The first row that output row 0 reads, rows from one output row to the next (perhaps 0), and
    how many each reads; None when the rows that are read move in another way.
    """
    if len(ref.indices) != 4:
        return None
    if any(index.coefficient("y") for index in (ref.indices[0], *ref.indices[2:])):
        return None
    index = ref.indices[1]
    step = index.coefficient("y")
    low, high = index.limits(extents | {"y": 1})
    return (low, step, high - low + 1) if step >= 0 else None


def scheduled_cascade(
    stripes: Sequence[Stripes], first: int, chosen: Sized, config: HardwareConfig, grain: Grain
) -> Cascade:
    """The cascade of one of ``CascadeSizes``."""
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
    """The widest tile of a strip whose sums fit in ACC; of these, the one of the most channel
    blocks.
    """
    kernel, extents = each.layer.kernel, each.layer.kernel.extents
    # Where a result is wider than its loop, each iteration makes several columns.
    width = extents["x"]
    if each.most_pixels is not None:
        most = each.most_pixels
    else:
        folded = prod(extents[name] for name in kernel.nests[-1].reduction if name in extents)
        most = max(FOLDED_ITERATIONS // max(folded, 1), rows * width)
    x = max(d for d in range(1, width + 1) if width % d == 0 and d * rows <= most)
    if kernel.by_rows:
        return {"c": extents["c"], "y": rows, "x": x}
    blocks = 1 if kernel.is_far or _uneven(each, rings) else max(1, most // (rows * x))
    if each.part:
        blocks = min(blocks, config.depth(each.part[0]) // 2 // each.part[1])
    blocks = max(1, min(blocks, extents["c"]) // grain.parts)
    c = max(d for d in range(1, blocks + 1) if extents["c"] % d == 0)
    return {"c": c, "y": rows, "x": x}


def _uneven(each: Stripes, rings: Mapping[str, RowRing]) -> bool:
    """True if a sum's operands and result are in buffers of different heights."""
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
