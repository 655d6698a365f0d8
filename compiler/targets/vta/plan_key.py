"""Key of a network's plan: networks of one structure have one key.

Names do not count, nor does any value: weights, scales, zero points; but it counts whether
weights are nibbles.  So the equal blocks of a network that are in parts of their own are planned
once, and a network whose weights were trained further keeps its plan.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import replace

from ...options import Overlap
from .layers.activation import Activation
from .layers.definition import LoweredLayer
from .nest import Nest, Ref
from .plan import Ends

__all__ = ["plan_key"]


def plan_key(
    layers: Sequence[LoweredLayer], ends: Ends, config: HardwareConfig, overlap: Overlap
) -> str:
    """The same for layers of the same loops, tensors and ends on the same configuration."""
    tensors = list(ends.sources)
    for layer in layers:
        beside = (each for each in (layer.stored, layer.given) if each is not None)
        tensors += [*layer.inputs, *beside, layer.output]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(x.name for x in tensors))}
    digest = hashlib.sha256(f"{config!r} {overlap.value}".encode())
    for x in tensors:
        ends_of = x.name in ends.results, x.name in ends.constants
        digest.update(repr((numbers[x.name], _shape(x), ends_of)).encode())
    for layer in layers:
        for nest in layer.kernel.nests:
            digest.update(repr(tuple(_structure(nest, numbers))).encode())
        digest.update(f"{layer.nibbles}\n".encode())
    return digest.hexdigest()[:32]


def _shape(x: Activation) -> Activation:
    """Without its name, and the value in its halo."""
    return replace(x, name="", fill=None if x.fill is None else 0)


def _structure(nest: Nest, numbers: Mapping[str, int]) -> Iterator[object]:
    """Loops, and what they touch; tensors by their numbers."""
    yield nest.loops, sorted(nest.reduction), nest.fold, nest.adds
    yield from (type(each).__name__ for each in (nest.value, nest.finish, nest.table))
    for ref in nest.refs:
        yield numbers.get(ref.buffer.name, ref.buffer.name), _place(ref)


def _place(ref: Ref) -> tuple[object, ...]:
    buffer = ref.buffer
    indices = [
        (index.constant, sorted((str(atom), factor) for atom, factor in index.terms.items()))
        for index in ref.indices
    ]
    return buffer.shape, buffer.dtype, buffer.scope, indices
