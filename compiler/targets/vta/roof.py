"""Cycles that no plan of some layers can go below, on a configuration.

See ``docs/planner.md``, "Roof", for why.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory, Unit

from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .model import unit_cycles

__all__ = ["Roof", "roof_of"]

Region = tuple[int, int, int]
"""Channel blocks, rows and columns."""


@dataclass(frozen=True, slots=True)
class Roof:
    """gemm, vector: cycles in which these units work.  dram: in which DRAM moves what it must.

    late: until the end of weights that cannot be there before the layer that needs them begins.
    """

    gemm: int
    vector: int
    dram: int
    late: int

    @property
    def cycles(self) -> int:
        """The largest of all."""
        return max(self.gemm, self.vector, self.dram, self.late)


def roof_of(
    layers: Sequence[LoweredLayer],
    sources: Sequence[Activation],
    results: Container[str],
    config: HardwareConfig,
) -> Roof:
    """results: names of activations that are in DRAM in the end."""
    busy = [unit_cycles(layer.kernel, config) for layer in layers]
    moved = sum(array.nbytes for layer in layers for array in layer.constants.values())
    made = (layer.output for layer in layers if layer.output.name in results)
    moved += sum(_size(x, config) for x in (*sources, *made))
    return Roof(
        sum(each[Unit.GEMM] for each in busy),
        sum(each[Unit.VECTOR] for each in busy),
        _beats(moved, config),
        _late(layers, busy, config),
    )


def _beats(size: int, config: HardwareConfig) -> int:
    """Cycles in which DRAM moves ``size`` bytes."""
    return size // config.bus_bytes * config.dram.beat_interval_cycles


def _size(x: Activation, config: HardwareConfig) -> int:
    """Bytes of all pixels, in blocks; of an image none, because not every pixel need be read."""
    pixels = 0 if x.image else x.blocks * x.height * x.width
    return pixels * config.word_bytes(Memory.ACT)


def _late(
    layers: Sequence[LoweredLayer],
    busy: Sequence[Mapping[Unit, int]],
    config: HardwareConfig,
) -> int:
    """Cycles until weights have come that cannot be there when their layers begin.

    When the first of the layers from some number on begins, WGT holds at most as much of their
    weights as it is deep; the others come after.
    """
    latest, words = 0, 0
    shares: list[Mapping[int, float]] = []
    """What must be done before each layer with weights begins; the last layer comes first."""
    for first in reversed(range(len(layers))):
        if "weights" not in layers[first].constants:
            continue
        words += layers[first].constants["weights"].nbytes // config.word_bytes(Memory.WGT)
        shares.append(_before(layers, first))
        beyond = words - config.wgt_depth
        if beyond > 0:
            begin = min(_work(each, busy, first) for each in shares)
            latest = max(latest, begin + _beats(beyond * config.word_bytes(Memory.WGT), config))
    return latest


def _work(share: Mapping[int, float], busy: Sequence[Mapping[Unit, int]], first: int) -> int:
    """Cycles of the busier unit for shares of the layers before ``first``."""
    return max(
        int(sum(part * busy[number][unit] for number, part in share.items() if number < first))
        for unit in (Unit.GEMM, Unit.VECTOR)
    )


def _before(layers: Sequence[LoweredLayer], start: int) -> dict[int, float]:
    """Which part of each layer must be done for the first products of layer ``start``: what one
    pixel, one block of channels and one block of inputs come from.
    """
    wanted: dict[str, Region] = {}
    share: dict[int, float] = {}
    _want(wanted, layers[start], {"c": 1, "y": 1, "x": 1, "k": 1})
    for number in reversed(range(start)):
        layer, output = layers[number], layers[number].output
        region = wanted.get(output.name)
        if region is None or output.whole is not output:
            continue
        whole = output.blocks, output.height, output.width
        blocks, rows, columns = map(min, region, whole)
        share[number] = blocks * rows * columns / prod(whole)
        _want(wanted, layer, {"c": blocks, "y": rows, "x": columns})
    return share


def _want(wanted: dict[str, Region], layer: LoweredLayer, inside: Mapping[str, int]) -> None:
    """Note what the iterations ``inside`` of a layer read, at the least: some of it may be halo."""
    inputs = {x.name: x for x in layer.inputs}
    for nest in layer.kernel.nests:
        extents = {
            name: min(count, inside.get(name, count)) for name, count in nest.extents.items()
        }
        for ref in nest.refs[1:]:
            x = inputs.get(ref.buffer.name)
            if x is None or len(ref.indices) != len(x.buffer.shape):
                continue
            spans = (index.limits(extents) for index in ref.indices[:3])
            blocks, rows, columns = (high - low + 1 for low, high in spans)
            top, left, bottom, right = x.halo
            region = blocks, max(1, rows - top - bottom), max(1, columns - left - right)
            old = wanted.get(x.name, (0, 0, 0))
            wanted[x.name] = tuple(map(max, old, region))  # type: ignore[assignment]
