"""Normalisations of all elements of an image, as GroupNorm of one group is written.

    QuantizeLinear(InstanceNormalization(Reshape(x, [1, 1, -1])))

All elements are one row, so their order does not matter: the operator goes in front of what moves
them, where the image has its channels, and its result is moved as the image was.
"""

from collections.abc import Sequence

import numpy as np

from ...ir import GraphBuilder, Node
from ...operators.integer.norm import MOST_EPSILON
from ...operators.integer.tensor_norm import MOST_ELEMENTS, NormSteps, TensorNorm
from ...operators.movement import Reshape, Transpose
from .values import F32, Array

__all__ = ["as_image", "image_epsilon", "is_uniform", "normalised_image"]

WIDE = 1 << 19
"""Part of a scale that ``TensorNorm`` has by itself."""


def is_uniform(scale: Array, bias: Array) -> bool:
    """True if all elements have one positive scale, and nothing is added."""
    return bool((scale == scale[0]).all() and scale[0] > 0 and not bias.any())


def image_epsilon(epsilon: float, x_scale: float, elements: int) -> int | None:
    """The epsilon of the operator; None where it is too large, or there are too many elements."""
    if not 1 < elements <= MOST_ELEMENTS:
        return None
    found = epsilon / x_scale**2 * NormSteps(elements).factor * elements
    return round(found) if found <= MOST_EPSILON else None


def as_image(graph: GraphBuilder, name: str) -> tuple[str, tuple[Node, ...]]:
    """The tensor that ``name`` has all elements of, as a layer made it; what moves them since."""
    makers = {node.output: node for node in graph.nodes}
    moves = list[Node]()
    while (maker := makers.get(name)) and isinstance(maker.operator, Reshape | Transpose):
        moves.append(maker)
        name = maker.inputs[0]
    return name, tuple(reversed(moves))


def normalised_image(
    graph: GraphBuilder,
    image: str,
    moves: Sequence[Node],
    operator: tuple[int, int, float],
    stem: str,
    origin: str,
) -> str:
    """The image normalised, then moved.

    operator: epsilon and zero point of ``TensorNorm``, and the step of its result.
    """
    epsilon, zero_point, step = operator
    elements = graph.types[image].elements
    scale = float(F32(np.sqrt(NormSteps(elements).factor / elements) / step / WIDE))
    name = graph.node(TensorNorm(epsilon, zero_point, scale), (image,), stem, origin)
    for move in moves:
        name = graph.node(move.operator, (name,), stem, origin)
    return name
