"""Layers that run some channel blocks at a time: a convolution makes the blocks, a layer that keeps
channels apart works on them, and perhaps a second convolution adds them to its sums.

What is between them then needs room for a few blocks only, every weight is loaded once, and matrix
core, vector unit and DRAM work at the same time: expand, depthwise and project of an inverted
residual on images too small to be cut into strips; or the first two of these, where a mean of all
pixels comes next.
"""

from collections.abc import Mapping, Sequence
from math import prod

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen, replace
from dovetail.isa.memories import Memory, Unit

from ...loops.affine import Linear
from ...loops.expressions import Variable
from .constants import constant_bytes
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .model import unit_cycles
from .nest import Kernel
from .schedules import AXES, Tiling
from .stream import PARAMETERS, StreamedLayer
from .tile_estimate import TILE_CYCLES
from .windows import SLOTS, Window

__all__ = [
    "MARGIN",
    "MEMBERS",
    "BlockCascade",
    "BlockRing",
    "Blocks",
    "block_cascade",
    "block_sizes",
    "is_plain",
    "steps_by",
]

MEMBERS = 2, 3
"""Layers of a cascade: one makes blocks, the next goes on, and perhaps one sums up."""

MARGIN = 1.1
"""Estimate: layers one after the other take less than their sum, because programs overlap them."""


@frozen
class Blocks:
    """A way to run such layers, ``size`` blocks at a time.

    words: of ACT, for what is between the layers.  cycles: expected.  dram: those of them in
    which DRAM works.
    """

    size: int
    words: int
    cycles: int
    dram: int


@frozen
class BlockRing:
    """Room for an activation between two layers: ``slots`` times ``size`` blocks, used in turn.

    kept: the activation is wholly on chip, and each part has its own place.
    """

    activation: Activation
    size: int
    slots: int
    kept: bool

    @property
    def words(self) -> int:
        """Words of ACT."""
        return self.slots * self.slot_words

    @property
    def slot_words(self) -> int:
        """Words of one part."""
        return self.size * self.activation.rows * self.activation.columns

    @property
    def slot(self) -> Activation:
        """An activation of as many blocks as one part."""
        x = self.activation
        return replace(x, channels=self.size * x.lanes)

    def window(self, axis: str) -> Window:
        """The part that a layer touches in one turn of the loop ``axis``."""
        x = self.activation
        origin = Linear(0, {Variable(f"{axis}.outer"): self.size})
        nowhere = Linear(0, {})
        return Window(x, (self.size, x.rows, x.columns), (origin, nowhere, nowhere))


@frozen
class BlockCascade:
    """Layers ``first`` and the next one or two.  rings: of what the first two make, by name.

    parts: how often each of them runs.
    """

    first: int
    layers: tuple[StreamedLayer, ...]
    rings: Mapping[str, BlockRing]
    parts: int


def block_sizes(layers: Sequence[LoweredLayer], config: HardwareConfig) -> list[Blocks]:
    """Every way to run two or three layers whose activations in between no other layer reads.

    The way with the fewest parts comes first; none where these are not such layers.
    """
    make, *others = (layer.kernel for layer in layers)
    if config.acc_banks == 1 or not _suits(layers):
        return []
    between = make.extents["c"]
    busy = [unit_cycles(kernel, config) for kernel in (make, *others)]
    total = [sum(each[unit] for each in busy) for unit in (Unit.GEMM, Unit.VECTOR)]
    moved = sum(constant_bytes(layer, config) for layer in layers)
    beats = moved // config.bus_bytes * config.dram.beat_interval_cycles
    found = []
    for size in reversed(range(1, between)):
        if between % size or not _fits(layers, size, config):
            continue
        parts = between // size
        rings = (BlockRing(layer.output, size, SLOTS, kept=False) for layer in layers[:-1])
        ends = sum(max(each.values()) for each in busy) // parts
        ends += prod(others[-1].extents[axis] for axis in AXES) if layers[2:] else 0
        cycles = int(MARGIN * (max(*total, beats) + ends)) + TILE_CYCLES * parts
        found.append(Blocks(size, sum(ring.words for ring in rings), cycles, beats))
    return found


def block_cascade(
    layers: Sequence[LoweredLayer], first: int, way: Blocks, gone: frozenset[str]
) -> BlockCascade:
    """The layers as ``way`` runs them.  first: the number of the first.  gone: activations
    that are not wholly on chip.
    """
    parts = layers[0].output.blocks // way.size
    rings = {}
    for layer in layers[:2]:
        x = layer.output
        kept = x.name not in gone
        rings[x.name] = BlockRing(x, way.size, parts if kept else SLOTS, kept)
    planned = []
    for layer, axis in zip(layers, ("c", "c", "k"), strict=False):
        extents = layer.kernel.extents
        sizes = {each: extents[each] for each in AXES} | {axis: way.size}
        windows = {
            x.name: rings[x.name].window(axis)
            for x in (*layer.inputs, layer.output)
            if x.name in rings
        }
        bias = layer.kernel.refs.get("bias")
        parted = axis == "c" and bias is not None and bias.buffer.shape[0] > 1
        tiling = Tiling(sizes, AXES, SLOTS, PARAMETERS if parted else ())
        planned.append(StreamedLayer(layer, tiling, windows))
    return BlockCascade(first, tuple(planned), rings, parts)


def _suits(layers: Sequence[LoweredLayer]) -> bool:
    """True if each block that the second layer makes comes from the same block alone, and the third
    adds all of them up, if there is one.
    """
    make, go, *rest = layers
    if [x.name for x in go.inputs] != [make.output.name]:
        return False
    if any(layer.stored is not None or layer.kernel.by_rows for layer in layers):
        return False
    if not all(is_plain(layer.output) for layer in layers[:2]):
        return False
    if "acc" in go.kernel.refs or go.kernel.is_far:
        return False
    summed = all("acc" in layer.kernel.refs for layer in (make, *rest))
    apart = summed and steps_by(go.kernel, make.output.name, "c")
    return apart and make.output.blocks == go.output.blocks and all(_sums(go, x) for x in rest)


def _sums(go: LoweredLayer, add: LoweredLayer) -> bool:
    """True if ``add`` adds up the blocks that ``go`` makes, one after the other."""
    others = [x.name for x in add.inputs if x.name != go.output.name]
    if len(others) == len(add.inputs) or go.inputs[0].name in others:
        return False
    return add.kernel.extents.get("k") == go.output.blocks and steps_by(
        add.kernel, go.output.name, "k"
    )


def is_plain(x: Activation) -> bool:
    """True if it is a whole tensor in blocks that follow each other."""
    return x.whole == x and x.image is None and x.places is None and x.grid is None


def steps_by(kernel: Kernel, name: str, axis: str) -> bool:
    """True if what ``kernel`` reads of an activation is the block that ``axis`` counts."""
    refs = [ref for nest in kernel.nests for ref in nest.refs[1:] if ref.buffer.name == name]
    return bool(refs) and all(
        ref.indices[0].constant == 0 and ref.indices[0].terms == {Variable(axis): 1} for ref in refs
    )


def _fits(layers: Sequence[LoweredLayer], size: int, config: HardwareConfig) -> bool:
    """True if sums fit in banks of ACC, tables in TAB, and other constants of one turn in half of
    their memories.
    """
    make = layers[0].kernel
    sums = [size * make.extents["y"] * make.extents["x"] * make.sum_words]
    kernels = [layer.kernel for layer in layers[2:]]
    sums += [each.sum_words * prod(each.extents[a] for a in AXES) for each in kernels]
    if max(sums) > config.bank_words(Memory.ACC):
        return False
    whole = layers[2].constants.get("bias") if layers[2:] else None
    needed = _constants(layers, size, config)
    needed[Memory.PAR] = 4 * size + (0 if whole is None else len(whole))
    # Every part looks up in the tables of all layers.
    tables = sum(len(layer.constants.get("table", ())) for layer in layers)
    return tables <= config.tab_depth and all(
        2 * words <= config.depth(memory) for memory, words in needed.items()
    )


def _constants(
    layers: Sequence[LoweredLayer], size: int, config: HardwareConfig
) -> dict[Memory, int]:
    """Words of WGT and TAP for one turn of the layer that needs most."""
    found = {Memory.WGT: 0, Memory.TAP: 0}
    for layer in layers:
        for name, memory in (("weights", Memory.WGT), ("taps", Memory.TAP)):
            if name in layer.constants:
                words = layer.constants[name].nbytes // config.word_bytes(memory)
                found[memory] = max(found[memory], words * size // layers[0].output.blocks)
    return found
