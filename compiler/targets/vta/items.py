"""Activations that need words of ACT: how many, while which layers run, and who uses them."""

from collections.abc import Sequence

from dovetail.isa.frozen import frozen
from dovetail.isa.memories import Unit

from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .layers.lower import ADDEND
from .model import unit_of

__all__ = ["Item", "activation_items"]


@frozen
class Item:
    """Words of ACT for an activation, from layer ``first`` (which makes it) to layer ``last``.

    readers, writers: layer and unit of each that reads or writes it.  summed: layers that read
    there what they wrote, for a residual sum.
    """

    activation: Activation
    first: int
    last: int
    readers: frozenset[tuple[int, Unit]]
    words: int
    writers: frozenset[tuple[int, Unit]] = frozenset()
    summed: frozenset[int] = frozenset()

    def lives_with(self, other: "Item") -> bool:
        """True if both are there at one time."""
        return self.first <= other.last and other.first <= self.last


def activation_items(layers: Sequence[LoweredLayer], sources: Sequence[Activation]) -> list[Item]:
    """Every activation, living from the layer that makes it to the last that reads it; of
    ``sources``, those that layers read, from the layer before the first that does.
    """
    readers: dict[str, set[tuple[int, Unit]]] = {}
    summed: dict[str, set[int]] = {}
    for number, layer in enumerate(layers):
        for activation in layer.inputs:
            units = {
                unit_of(nest)
                for nest in layer.kernel.nests
                if any(ref.buffer.name == activation.name for ref in nest.refs[1:])
            }
            entry = readers.setdefault(activation.name, set())
            entry |= {(number, unit) for unit in units or {Unit.VECTOR}}
        if any(ref.buffer.name == ADDEND for nest in layer.kernel.nests for ref in nest.refs[1:]):
            summed.setdefault(layer.output.name, set()).add(number)
    given = [each for each in sources if each.name in readers]
    begins = {each.name: min(n for n, _ in readers[each.name]) - 1 for each in given}
    made = [(each, begins[each.name]) for each in given]
    for number, layer in enumerate(layers):
        # Of the layers that make parts of an activation, the first counts.
        if all(other.name != layer.output.name for other, _ in made):
            made.append((layer.output.whole, number))
    ends: dict[str, int] = {}
    for number, layer in enumerate(layers):
        for activation in (*layer.inputs, layer.output):
            ends[activation.name] = number
    return [
        Item(
            activation,
            first,
            ends.get(activation.name, first),
            frozenset(readers.get(activation.name, ())),
            activation.words,
            frozenset({(first, Unit.LOAD if activation.name in begins else Unit.VECTOR)}),
            frozenset(summed.get(activation.name, ())),
        )
        for activation, first in made
    ]
