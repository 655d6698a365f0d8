"""Placing activations in ACT by liveness, and rings for what is loaded once."""

from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.isa.config import HardwareConfig
from dovetail.isa.memories import Memory

from ...errors import DoesNotFitError
from ...tensor.lower import Activation, LoweredLayer

__all__ = ["Ring", "place_activations"]


@dataclass(frozen=True, slots=True)
class _Live:
    activation: Activation
    first: int
    last: int


def place_activations(
    layers: Sequence[LoweredLayer], source: Activation, config: HardwareConfig
) -> dict[str, int]:
    """First ACT word of every activation, by name; two that live at once never overlap.

    An activation lives from the layer that makes it to the last that reads it.  Space that was
    never used is preferred, so that a layer rarely waits for the readers of what lay there before.
    Raises DoesNotFitError, naming the layer, when there is no room.
    """
    lives = [_Live(source, -1, _last_reader(layers, source.name))]
    lives += [
        _Live(layer.output, number, max(number, _last_reader(layers, layer.output.name)))
        for number, layer in enumerate(layers)
    ]
    placed: list[tuple[int, _Live]] = []
    cursor = 0
    for live in lives:
        words = live.activation.words
        busy = sorted(
            (start, start + other.activation.words)
            for start, other in placed
            if other.first <= live.last and live.first <= other.last
        )
        start = _gap(busy, words, cursor, config.act_depth)
        if start is None:
            start = _gap(busy, words, 0, config.act_depth)
        if start is None:
            taken = sum(end - begin for begin, end in busy)
            name = layers[live.first].kernel.name if live.first >= 0 else source.name
            raise DoesNotFitError(
                f"layer {name!r}: act scratchpad: {words} words required beside {taken} in use, "
                f"{config.act_depth} available; use a configuration with a deeper ACT, "
                "or a smaller input"
            )
        placed.append((start, live))
        cursor = start + words
    return {live.activation.name: start for start, live in placed}


def _last_reader(layers: Sequence[LoweredLayer], name: str) -> int:
    readers = [i for i, layer in enumerate(layers) if name in {x.name for x in layer.inputs}]
    return max(readers, default=-1)


def _gap(busy: list[tuple[int, int]], words: int, start: int, depth: int) -> int | None:
    """The first place from ``start`` on with room for ``words``; None when there is none."""
    for begin, end in busy:
        if end <= start:
            continue
        if begin >= start + words:
            break
        start = end
    return start if start + words <= depth else None


class Ring:
    """Space of a memory given out in turn; addresses wrap, as the hardware's do."""

    def __init__(self, config: HardwareConfig, memory: Memory) -> None:
        self._memory, self._depth = memory, config.depth(memory)
        self._next = 0

    def take(self, words: int, layer: str) -> int:
        """First word of the next ``words``.

        Raises DoesNotFitError when the memory has fewer in all.
        """
        if words > self._depth:
            raise DoesNotFitError(
                f"layer {layer!r}: {self._memory.value} scratchpad: {words} words required, "
                f"{self._depth} available; use a configuration with a deeper {self._memory.name}"
            )
        start = self._next
        self._next = (start + words) % self._depth
        return start
