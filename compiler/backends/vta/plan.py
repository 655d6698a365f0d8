"""Which activations stay in DRAM, how each layer is tiled, and where in ACT everything lies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from ...errors import DoesNotFitError
from ...schedule.defaults import Limits, default_schedule
from ...schedule.primitives import Schedule
from ...tensor.lower import Activation, LoweredLayer
from .place import Item, NoRoomError, activation_items, place
from .stream import StreamedLayer, TileError, stream_schedule
from .windows import Window

__all__ = ["Plan", "plan_layers"]


@dataclass(frozen=True, slots=True)
class Plan:
    """layers: the schedule of each; what it streams is in its windows.

    places: first ACT word of every activation that is on chip, by name; of the buffers of layer
    ``n`` for the activation ``name``, by ``(n, name)``.
    streamed: names of the activations that stay in DRAM.
    """

    layers: tuple[StreamedLayer, ...]
    places: Mapping[str | tuple[int, str], int]
    streamed: frozenset[str]

    @property
    def schedules(self) -> tuple[Schedule, ...]:
        """The schedule of each layer."""
        return tuple(layer.schedule for layer in self.layers)


def plan_layers(layers: Sequence[LoweredLayer], source: Activation, config: HardwareConfig) -> Plan:
    """Keep all activations on chip, but for the largest of those that do not fit together.

    Each round moves at least one more to DRAM, so this ends.
    Raises DoesNotFitError, naming the layer, when one does not fit even so.
    """
    streamed: frozenset[str] = frozenset()
    items = activation_items(layers, source)
    while True:
        try:
            return _plan(layers, items, streamed, config)
        except NoRoomError as problem:
            streamed = _with_largest(items, streamed, problem)


def limits_of(config: HardwareConfig) -> Limits:
    """What a tile may use: one bank of ACC, and half of WGT, so that the next one's are loaded."""
    return Limits(acc_words=config.bank_words(Memory.ACC), wgt_words=config.wgt_depth // 2)


def _constants_fit(layer: LoweredLayer, config: HardwareConfig) -> bool:
    """Whether half of WGT holds the weights of one channel block, and TAP and PAR all of theirs."""
    nothing = np.zeros((1, 0))
    sizes = {
        Memory.WGT: 2 * layer.constants.get("weights", nothing)[0].nbytes,
        Memory.TAP: layer.constants.get("taps", nothing).nbytes,
        Memory.PAR: 2 * layer.constants.get("bias", nothing).nbytes,
    }
    return all(
        size <= config.depth(memory) * config.word_bytes(memory) for memory, size in sizes.items()
    )


def _with_largest(
    items: Sequence[Item],
    streamed: frozenset[str],
    problem: NoRoomError,
) -> frozenset[str]:
    """``streamed`` and the largest activation on chip that is there when ``problem`` arises."""
    there = [
        item
        for item in items
        if item.first <= problem.layer <= item.last and item.activation.name not in streamed
    ]
    if not there:
        raise DoesNotFitError(str(problem))
    return streamed | {max(there, key=lambda item: item.words).activation.name}


def _plan(
    layers: Sequence[LoweredLayer],
    items: Sequence[Item],
    streamed: frozenset[str],
    config: HardwareConfig,
) -> Plan:
    kept = [item for item in items if item.activation.name not in streamed]
    planned, buffers = [], []
    for number, layer in enumerate(layers):
        touched = {x.name: x for x in (*layer.inputs, layer.output) if x.name in streamed}
        if not touched and _constants_fit(layer, config):
            planned.append(StreamedLayer(default_schedule(layer.kernel, limits_of(config)), {}))
            continue
        taken = sum(item.words for item in kept if item.first <= number <= item.last)
        try:
            planned.append(stream_schedule(layer.kernel, touched, config, config.act_depth - taken))
        except TileError as error:
            raise NoRoomError(str(error), number) from None
        buffers += [_buffer(planned[-1].windows[name], x, number) for name, x in touched.items()]
    names = [layer.kernel.name for layer in layers]
    starts = place([*kept, *buffers], names, config)
    places: dict[str | tuple[int, str], int] = {
        item.activation.name: start for item, start in zip(kept, starts, strict=False)
    }
    for item, start in zip(buffers, starts[len(kept) :], strict=True):
        places[item.first, item.activation.name] = start
    return Plan(tuple(planned), places, streamed)


def _buffer(window: Window, activation: Activation, number: int) -> Item:
    return Item(activation, number, number, frozenset(), window.slots * window.words)
