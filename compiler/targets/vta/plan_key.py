"""What a network's plan depends on, as a key: two networks of one structure have one key.

Names do not count, nor do the values of constants; so the equal blocks of a network that lie in
parts of their own are planned once, and a network whose weights were trained further keeps its
plan.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dovetail.isa.config import HardwareConfig

from ...loops.text import name_to_text, to_text
from ...options import Overlap
from .layers.definition import LoweredLayer
from .plan import Ends

__all__ = ["plan_key"]

NAME = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.]*')
"""A name in a loop program's text."""


def plan_key(
    layers: Sequence[LoweredLayer], ends: Ends, config: HardwareConfig, overlap: Overlap
) -> str:
    """The same for layers of the same loops, tensors and ends on the same configuration."""
    tensors = {x.name: x for x in ends.sources}
    for layer in layers:
        for x in (*layer.inputs, *([layer.stored] if layer.stored else []), layer.output):
            tensors.setdefault(x.name, x)
    numbers = {name: number for number, name in enumerate(tensors)}
    digest = hashlib.sha256(f"{config!r} {overlap.value}".encode())
    for name, x in tensors.items():
        digest.update(repr(replace(x, name="")).encode())
        digest.update(f"{name in ends.results} {name in ends.constants}\n".encode())
    names = {name_to_text(name): f"tensor{number}" for name, number in numbers.items()}
    for layer in layers:
        parts = [replace(x, name=str(numbers[x.name])) for x in (*layer.inputs, layer.output)]
        digest.update(_structure(layer, names).encode() + repr(parts).encode())
    return digest.hexdigest()[:32]


def _structure(layer: LoweredLayer, names: Mapping[str, str]) -> str:
    """The layer's program with ``names`` for those of tensors, and without its own."""
    text = to_text(replace(layer.function, name=""))
    return NAME.sub(lambda found: names.get(found[0], found[0]), text)
