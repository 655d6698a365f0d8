"""Normalisations of all of an image, or of groups of its channels, as GroupNorm is written.

    QuantizeLinear(InstanceNormalization(Reshape(x, [1, groups, -1])))

The order of the elements of a row does not matter: the operator goes in front of what moves them,
where the image has its channels, and its result is moved as the image was.
"""

from math import prod

import numpy as np

from dovetail.isa.frozen import frozen

from ...ir import GraphBuilder, Node
from ...operators.integer.norm import MOST_EPSILON
from ...operators.integer.tensor_norm import MOST_ELEMENTS, NormSteps, TensorNorm
from ...operators.movement import Concatenate, Reshape, Slice, Transpose
from .values import F32, Array

__all__ = ["Image", "image_epsilon", "image_of_rows", "is_uniform", "normalised_image"]

WIDE = 1 << 19
"""Part of a scale that ``TensorNorm`` has by itself."""

LEAST_CHANNELS = 16
"""Channels of a group are a multiple of these: of fewer, no block is one group's alone."""

CHANNELS_FIRST = Transpose((0, 3, 1, 2))


def is_uniform(scale: Array, bias: Array) -> bool:
    """True if all elements have one positive scale, and nothing is added."""
    return bool((scale == scale[0]).all() and scale[0] > 0 and not bias.any())


def image_epsilon(epsilon: float, x_scale: float, elements: int) -> int | None:
    """The epsilon of the operator; None where it is too large, or there are too many elements."""
    if not 1 < elements <= MOST_ELEMENTS:
        return None
    found = epsilon / x_scale**2 * NormSteps(elements).factor * elements
    return round(found) if found <= MOST_EPSILON else None


@frozen
class Image:
    """A tensor of which some rows have all elements, as a layer made it.

    groups: parts of as many of its channels each, which are the rows.  moves: what made rows of it.
    """

    name: str
    groups: int
    moves: tuple[Node, ...]


def image_of_rows(graph: GraphBuilder, rows: str) -> Image | None:
    """The image that the rows of a batch of one are made of; None of others."""
    makers, name, moves = {node.output: node for node in graph.nodes}, rows, list[Node]()
    while (maker := makers.get(name)) and isinstance(maker.operator, Reshape | Transpose):
        moves.insert(0, maker)
        name = maker.inputs[0]
    shape, (*outer, length) = graph.types[name].shape, graph.types[rows].shape
    groups = prod(outer)
    if shape[0] != 1 or shape[-1] == length:
        return None
    if groups > 1:
        turned = [each.operator for each in moves[:1]] == [CHANNELS_FIRST]
        # Channels come first in the rows, each of which is of whole blocks of them.
        if not turned or len(moves) != 2 or shape[-1] % (LEAST_CHANNELS * groups):
            return None
    return Image(name, groups, tuple(moves))


def normalised_image(
    graph: GraphBuilder, image: Image, norm: tuple[int, int, float], stem: str, origin: str
) -> str:
    """Each group of channels normalised, and all of it as the rows were.

    norm: epsilon and zero point of ``TensorNorm``, and the step of its result.
    """
    epsilon, zero_point, step = norm
    *size, channels = graph.types[image.name].shape
    part = (*size, channels // image.groups)
    elements = prod(part)
    scale = float(F32(np.sqrt(NormSteps(elements).factor / elements) / step / WIDE))
    operator, names = TensorNorm(epsilon, zero_point, scale), list[str]()
    for group in range(image.groups):
        x = image.name
        if image.groups > 1:
            start = (*[0] * len(size), group * part[-1])
            x = graph.node(Slice(start, (1,) * len(part), part), (x,), stem, origin)
        names.append(graph.node(operator, (x,), stem, origin))
    (name,) = names[:1]
    if image.groups > 1:
        name = graph.node(Concatenate(len(size)), tuple(names), stem, origin)
    for move in image.moves:
        name = graph.node(move.operator, (name,), stem, origin)
    return name
