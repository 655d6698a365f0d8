"""Masks: elements of a tensor where a condition of the model's holds, and its least byte elsewhere.

QuantizeLinear(Where(condition, x, -1e4))  ->  Add(x, mask), whose bytes are 127 or -128
"""

import numpy as np

from ...operators.elementwise import Where
from ...operators.indexing import Gather
from ...operators.integer.values import Add
from ...operators.movement import Reshape
from .kept import in_model_form
from .layouts import to_model_order
from .state import State, UnrecognisedError
from .values import Integer, Masked, identity_order

__all__ = ["quantize_masked"]


def quantize_masked(
    state: State, value: Masked, scale: np.float32, zero_point: int, stem: str, origin: str
) -> Integer:
    """A sum with 0 where elements are kept, and else with so little that the least byte is left."""
    real, graph = value.real, state.builder
    least = float(value.other) / float(scale) + zero_point
    if (real.scale, real.zero_point) != (scale, zero_point) or not least <= -128:
        raise UnrecognisedError(
            "picks elements of another scale than the result's, or others than its least; required "
            "one scale, and a constant of -128 steps or less"
        )
    x = to_model_order(graph, real.tensor, origin)
    shape = graph.types[x].shape
    mask = _mask(state, value.condition, origin)
    kind = graph.types[mask]
    if kind.shape != shape:
        places = np.broadcast_to(np.arange(kind.elements).reshape(kind.shape), shape)
        index = graph.constant(f"{stem}/places", np.ascontiguousarray(places))
        mask = graph.node(Reshape((kind.elements,)), (mask,), f"{stem}/mask", origin)
        mask = graph.node(Gather(0), (mask, index), f"{stem}/mask", origin)
    operator = Add(1.0, 1.0, zero_point, 127, zero_point, -128, 127)
    return Integer(graph.node(operator, (x, mask), stem, origin), identity_order(len(shape)))


def _mask(state: State, condition: str, origin: str) -> str:
    """127 where a condition of the model's holds, else -128; one for all that read it."""
    key = ("mask", condition)
    if key not in state.sums:
        graph, given = state.builder, in_model_form(state, condition)
        kept, left = (
            graph.constant(f"{condition}/mask", np.array(n, np.int8)) for n in (127, -128)
        )
        state.sums[key] = graph.node(Where(), (given, kept, left), f"{condition}/mask", origin)
    return state.sums[key]
