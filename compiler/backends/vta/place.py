"""Placing activations in ACT by liveness, and rings for what is loaded once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory, Unit

from ...errors import DoesNotFitError
from ...tensor.ir import Scope
from ...tensor.lower import Activation, LoweredLayer

__all__ = ["Grant", "Ring", "place_activations"]

NEAR = 2
"""Layers this far apart, or nearer, may run at the same time."""


@dataclass(frozen=True, slots=True)
class _Tensor:
    """An activation that is there from layer ``first`` (which makes it) to layer ``last``.

    readers: layer and unit of each that reads it.
    """

    activation: Activation
    first: int
    last: int
    readers: frozenset[tuple[int, Unit]]

    @property
    def words(self) -> int:
        """Words of ACT it takes."""
        return self.activation.words

    def lives_with(self, other: "_Tensor") -> bool:
        """Whether both are there at one time."""
        return self.first <= other.last and other.first <= self.last

    def rivals(self, other: "_Tensor") -> bool:
        """Whether two units may want to read both at one time."""
        return any(
            unit is not other_unit and abs(layer - other_layer) <= NEAR
            for (layer, unit), (other_layer, other_unit) in product(self.readers, other.readers)
        )


@dataclass(frozen=True, slots=True)
class _Place:
    tensor: _Tensor
    start: int

    @property
    def end(self) -> int:
        """The word after it."""
        return self.start + self.tensor.words

    def banks(self, config: HardwareConfig) -> set[int]:
        """The banks it lies in."""
        size = config.bank_words(Memory.ACT)
        return set(range(self.start // size, (self.end - 1) // size + 1))


def place_activations(
    layers: Sequence[LoweredLayer], source: Activation, config: HardwareConfig
) -> dict[str, int]:
    """First ACT word of every activation, by name; two that live at once never overlap.

    An activation lives from the layer that makes it to the last that reads it.  Where there is
    room, activations that different units read at the same time lie in different banks, and new
    ones where nothing was for longest, so that their layer need not wait.  Where there is none,
    they are packed. Raises DoesNotFitError, naming the layer, when there is no room even so.
    """
    tensors = _tensors(layers, source)
    placed = _spread(tensors, config)
    if placed is None:
        placed = _pack(tensors, layers, config)
    return {place.tensor.activation.name: place.start for place in placed}


def _tensors(layers: Sequence[LoweredLayer], source: Activation) -> list[_Tensor]:
    readers: dict[str, set[tuple[int, Unit]]] = {}
    for number, layer in enumerate(layers):
        scopes = {ref.buffer.scope for stage in layer.kernel.stages for ref in stage.refs}
        unit = Unit.GEMM if Scope.WGT in scopes else Unit.VECTOR
        for activation in layer.inputs:
            readers.setdefault(activation.name, set()).add((number, unit))
    made = [(source, -1), *((layer.output, number) for number, layer in enumerate(layers))]
    return [
        _Tensor(
            activation,
            first,
            max((layer for layer, _ in readers.get(activation.name, ())), default=first),
            frozenset(readers.get(activation.name, ())),
        )
        for activation, first in made
    ]


def _spread(tensors: Sequence[_Tensor], config: HardwareConfig) -> list[_Place] | None:
    """Each tensor at its best place beside those before it; None when one finds no place."""
    placed: list[_Place] = []
    for tensor in tensors:
        best = min(
            (
                (_cost(tensor, start, placed, config), start)
                for start in _room(tensor, placed, config)
            ),
            default=None,
        )
        if best is None:
            return None
        placed.append(_Place(tensor, best[1]))
    return placed


def _room(tensor: _Tensor, placed: Sequence[_Place], config: HardwareConfig) -> Iterator[int]:
    """Starts at which nothing that lives with ``tensor`` is in the way: of banks, after others."""
    busy = [place for place in placed if place.tensor.lives_with(tensor)]
    starts = {place.end for place in placed}
    starts |= set(range(0, config.act_depth, config.bank_words(Memory.ACT)))
    for start in starts:
        end = start + tensor.words
        if end <= config.act_depth and all(p.end <= start or end <= p.start for p in busy):
            yield start


def _cost(
    tensor: _Tensor, start: int, placed: Sequence[_Place], config: HardwareConfig
) -> tuple[int, int]:
    """Banks shared with rivals; then how lately something that lay there was read."""
    here = _Place(tensor, start)
    shared, lately = 0, -NEAR
    for place in placed:
        if place.start < here.end and start < place.end:
            lately = max(lately, place.tensor.last)
        if place.tensor.rivals(tensor):
            shared += len(place.banks(config) & here.banks(config))
    return shared, lately


def _pack(
    tensors: Sequence[_Tensor], layers: Sequence[LoweredLayer], config: HardwareConfig
) -> list[_Place]:
    """Each tensor at the lowest place, in the order they are made, or else the largest first.

    Raises DoesNotFitError, naming the layer of the first that finds none in the order they are
    made.
    """
    failed: _Tensor | None = None
    taken = 0
    for order in (tensors, sorted(tensors, key=lambda tensor: -tensor.words)):
        placed: list[_Place] = []
        for tensor in order:
            start = min(_room(tensor, placed, config), default=None)
            if start is None:
                busy = [place.tensor for place in placed if place.tensor.lives_with(tensor)]
                if failed is None:
                    failed, taken = tensor, sum(other.words for other in busy)
                break
            placed.append(_Place(tensor, start))
        else:
            return placed
    assert failed is not None
    name = layers[failed.first].kernel.name if failed.first >= 0 else failed.activation.name
    raise DoesNotFitError(
        f"layer {name!r}: act scratchpad: {failed.words} words required beside {taken} in use, "
        f"{config.act_depth} available; use a configuration with a deeper ACT, or a smaller input"
    )


@dataclass(frozen=True, slots=True)
class Grant:
    """Words that a ring gave out: the first, and how many it had given out before."""

    start: int
    before: int


class Ring:
    """Space of a memory given out in turn; addresses wrap, as the hardware's do."""

    def __init__(self, config: HardwareConfig, memory: Memory) -> None:
        self._memory, self._depth = memory, config.depth(memory)
        self._given = 0

    def take(self, words: int, layer: str) -> Grant:
        """The next ``words``.

        Raises DoesNotFitError when the memory has fewer in all.
        """
        if words > self._depth:
            raise DoesNotFitError(
                f"layer {layer!r}: {self._memory.value} scratchpad: {words} words required, "
                f"{self._depth} available; use a configuration with a deeper {self._memory.name}"
            )
        grant = Grant(self._given % self._depth, self._given)
        self._given += words
        return grant

    def holds(self, grant: Grant) -> bool:
        """Whether nothing that ``grant`` covers was given out again."""
        return self._given - grant.before <= self._depth
