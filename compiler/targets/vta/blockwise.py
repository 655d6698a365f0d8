"""A dense layer after a pool, run channel block by channel block while a convolution makes the
blocks: its weights, which fit in no scratchpad, are loaded while the matrix core is busy.
"""

from collections.abc import Sequence

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Memory, Unit

from .constants import constant_bytes
from .layers.definition import LoweredLayer
from .model import unit_cycles
from .nest import Kernel
from .schedules import Tiling
from .stream import StreamedLayer

__all__ = ["GROUP", "Blockwise", "blockwise"]

GROUP = len(("convolution", "pool", "dense"))
"""Layers that run together."""

SHARE = 4
"""A part of the dense layer's weights takes at most WGT divided by this."""

PART_CYCLES = 1500
"""Estimate: three times what a part of the dense layer costs, while the matrix core waits for the
pool.
"""

EAGER_PART_CYCLES = 500
"""The same, for plans that are judged by the cycles of a whole program."""


@frozen
class Blockwise:
    """Layers ``first``, a convolution, and the next two, a pool and a dense layer, block by block.

    blocks: channel blocks that the pool makes, and the dense layer adds up, at a time.  parts: how
    many times.
    early: whether the first part of the dense layer runs as soon as its blocks are made, so that
    DRAM never rests.  Otherwise it runs when half of all blocks are made, so that the convolution
    has all of ACC until then.
    """

    first: int
    blocks: int
    parts: int
    early: bool = False

    def ready(self, blocks: int) -> int:
        """Parts of the dense layer that run before the convolution goes on, when it has made that
        many blocks.
        """
        if self.early:
            return blocks // self.blocks
        return max(0, 2 * blocks - self.parts * self.blocks) // self.blocks


def blockwise(
    first: int,
    planned: Sequence[StreamedLayer],
    config: HardwareConfig,
    *,
    eager: bool = False,
) -> tuple[Blockwise, list[StreamedLayer]] | None:
    """Three layers from number ``first`` on, block by block, and their plans then.

    None if they are not such layers, if what they leave is not on chip, or if the dense layer's
    weights fit anyway or would come no sooner.

    planned: their plans so far.  eager: whether to do it even where little is gained, and early.
    """
    if config.acc_banks == 1:
        return None
    conv, pool, dense = (each.layer for each in planned)
    if any(each.windows for each in planned[1:]) or conv.output.name in planned[0].windows:
        return None
    if [x.name for x in pool.inputs] != [conv.output.name]:
        return None
    if any(each.layer.stored is not None for each in planned):
        return None
    if [x.name for x in dense.inputs] != [pool.output.name]:
        return None
    tiling, extents = planned[0].tiling, conv.kernel.extents
    if not (_is_pool(pool.kernel) and _is_dense(dense.kernel) and "k" in extents):
        return None
    if any(tiling.sizes.get(axis, extents[axis]) != extents[axis] for axis in ("y", "x", "k")):
        return None
    made, sums = pool.kernel.extents["c"], dense.kernel.extents["c"] * dense.kernel.sum_words
    if conv.kernel.extents["c"] != made or dense.kernel.extents["k"] != made:
        return None
    if made * sums <= config.wgt_depth // 2 or sums > config.bank_words(Memory.ACC):
        return None
    fitting = [d for d in range(1, made) if made % d == 0 and SHARE * d * sums <= config.wgt_depth]
    if not fitting:
        return None
    blocks = fitting[-1]
    # DRAM has time for the dense layer in the second half of the convolution.
    part_cycles = EAGER_PART_CYCLES if eager else PART_CYCLES
    spare = unit_cycles(conv.kernel, config)[Unit.GEMM] - _dram_cycles(conv, config)
    if min(spare // 2, _dram_cycles(dense, config)) < part_cycles * (made // blocks):
        return None
    one = {"y": 1, "x": 1}
    order, depths = ("c", "y", "x"), [each.tiling.depth for each in planned]
    new = [
        planned[0],
        StreamedLayer(pool, Tiling({"c": blocks, **one}, order, depths[1]), {}),
        StreamedLayer(dense, Tiling({"c": sums, **one, "k": blocks}, order, depths[2]), {}),
    ]
    return Blockwise(first, blocks, made // blocks, eager), new


def _dram_cycles(layer: LoweredLayer, config: HardwareConfig) -> int:
    """For its constants."""
    return constant_bytes(layer, config) // config.bus_bytes * config.dram.beat_interval_cycles


def _is_pool(kernel: Kernel) -> bool:
    """True if each block of its one pixel comes from the same block of its input alone."""
    extents = kernel.extents
    return "acc" not in kernel.refs and "k" not in extents and extents["y"] == extents["x"] == 1


def _is_dense(kernel: Kernel) -> bool:
    extents = kernel.extents
    ones = all(extents.get(axis, 1) == 1 for axis in ("y", "x", "ky", "kx"))
    return ones and "acc" in kernel.refs and "k" in extents and "weights" in kernel.refs
