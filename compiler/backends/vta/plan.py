"""Which activations stay in DRAM, how each layer is tiled, and where in ACT everything lies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dovetail.isa.config import HardwareConfig

from ...errors import DoesNotFitError
from ...schedule.defaults import Limits, default_schedule
from ...schedule.primitives import Schedule
from ...tensor.lower import Activation, LoweredLayer
from .place import Item, NoRoomError, activation_items, place
from .stream import StreamedLayer, stream_schedule
from .windows import SLOTS

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


def plan_layers(
    layers: Sequence[LoweredLayer], source: Activation, config: HardwareConfig, limits: Limits
) -> Plan:
    """Keep all activations on chip, but for the largest of those that do not fit together.

    Each round moves at least one more to DRAM, so this ends.
    Raises DoesNotFitError, naming the layer, when one does not fit even so.
    """
    streamed: frozenset[str] = frozenset()
    items = activation_items(layers, source)
    plain = tuple(default_schedule(layer.kernel, limits) for layer in layers)
    while True:
        try:
            return _plan(layers, plain, items, streamed, config, limits)
        except NoRoomError as problem:
            streamed = _with_largest(layers, items, streamed, problem)


def _with_largest(
    layers: Sequence[LoweredLayer],
    items: Sequence[Item],
    streamed: frozenset[str],
    problem: NoRoomError,
) -> frozenset[str]:
    """``streamed`` and the largest activation on chip that is there when ``problem`` arises.

    One address walks over both operands of a residual add: they stay in DRAM together.
    """
    there = [
        item
        for item in items
        if item.first <= problem.layer <= item.last and item.activation.name not in streamed
    ]
    if not there:
        raise DoesNotFitError(str(problem))
    found = {max(there, key=lambda item: item.words).activation.name} | streamed
    grown = True
    while grown:
        grown = False
        for layer in layers:
            names = {activation.name for activation in layer.inputs}
            if len(names) > 1 and names & found and not names <= found:
                found |= names
                grown = True
    return frozenset(found)


def _plan(
    layers: Sequence[LoweredLayer],
    plain: Sequence[Schedule],
    items: Sequence[Item],
    streamed: frozenset[str],
    config: HardwareConfig,
    limits: Limits,
) -> Plan:
    kept = [item for item in items if item.activation.name not in streamed]
    planned, buffers = [], []
    for number, layer in enumerate(layers):
        touched = {x.name: x for x in (*layer.inputs, layer.output) if x.name in streamed}
        taps = layer.constants.get("taps")
        splits = taps is not None and taps.nbytes > config.tap_depth * config.block
        if not touched and not splits:
            planned.append(StreamedLayer(plain[number], {}))
            continue
        taken = sum(item.words for item in kept if item.first <= number <= item.last)
        try:
            planned.append(
                stream_schedule(
                    layer.kernel, touched, limits, config.tap_depth // 2, config.act_depth - taken
                )
            )
        except DoesNotFitError as error:
            raise NoRoomError(str(error), number) from None
        buffers += [
            Item(x, number, number, frozenset(), SLOTS * planned[-1].windows[name].words)
            for name, x in touched.items()
        ]
    names = [layer.kernel.name for layer in layers]
    starts = place([*kept, *buffers], names, config)
    places: dict[str | tuple[int, str], int] = {
        item.activation.name: start for item, start in zip(kept, starts, strict=False)
    }
    for item, start in zip(buffers, starts[len(kept) :], strict=True):
        places[item.first, item.activation.name] = start
    return Plan(tuple(planned), places, streamed)
