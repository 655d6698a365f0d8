"""Running scheduled kernels of random layers."""

from collections.abc import Mapping

from dovetail.compiler.schedule.primitives import Cache, Schedule
from dovetail.compiler.tensor.interpreter import Arrays, run_kernel
from dovetail.compiler.tensor.ir import Kernel, Ref
from dovetail.compiler.tensor.stages import LoweredLayer

from ..tensor.layers import Array, Network, from_blocked


def scheduled_result(network: Network, layer: LoweredLayer, schedule: Schedule) -> Array:
    """What the scheduled kernel computes, NHWC; each tile's part of cached buffers is loaded.

    A buffer that the kernel writes is not loaded: it holds rubbish before each tile.
    """
    whole = Schedule(layer.kernel)
    for primitive in schedule.trace:
        if not isinstance(primitive, Cache):
            whole = whole.then(primitive)
    sources, targets = whole_refs(whole.kernel), _targets(whole.kernel)
    everything = network.arrays(layer)
    cached = {each.buffer for each in schedule.trace if isinstance(each, Cache)}
    small = whole_refs(schedule.kernel)
    arrays = dict(everything)

    def refill(tile: Mapping[str, int], arrays: Arrays) -> None:
        for name in cached:
            shape = small[name].buffer.shape
            window = tuple(
                slice(start, start + size)
                for start, size in zip(_origin(sources[name], tile), shape, strict=True)
            )
            arrays[name] = everything[name][window].copy()
            assert arrays[name].shape == shape
            if name in targets:
                arrays[name][...] = 55

    run_kernel(schedule.kernel, arrays, refill)
    return from_blocked(arrays[layer.output.name], layer.output)


def whole_refs(kernel: Kernel) -> dict[str, Ref]:
    """An element of each buffer the kernel touches, by name."""
    return {ref.buffer.name: ref for stage in kernel.stages for ref in stage.refs}


def _targets(kernel: Kernel) -> set[str]:
    return {stage.target.buffer.name for stage in kernel.stages}


def _origin(ref: Ref, tile: Mapping[str, int]) -> tuple[int, ...]:
    """The smallest indices that a tile touches, less the constant parts."""
    return tuple(
        sum(factor * tile[name] for name, factor in index.terms if name in tile)
        for index in ref.indices
    )
