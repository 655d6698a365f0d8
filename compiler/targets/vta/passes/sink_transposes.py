"""Transposes moved towards the outputs, where fewer of them lie between layers.

    f(Transpose(x), ...)   ->  Transpose(f(x, ...)), f a Concatenate, Slice, sum, table, ... that
                               can do so
    Reshape(Transpose(x))  ->  Transpose(Reshape(x)), where axes are only split or joined
    f(Transpose(x))        ->  Transpose(f(x)), f of each pixel's channels, which stay the last

Detectors write their heads with channels first: images as rows of pixels, one behind the other, and
then functions of these.  The accelerator's tensors have their channels last, so each such step
would turn them back and forth.  Each pattern moves a transpose one node nearer to the outputs, or
merges two; so the pass ends.
"""

import numpy as np

from ....graph.ir import Node
from ....graph.operators.integer.softmax import RowSoftmax
from ....graph.operators.integer.values import Softmax
from ....graph.operators.movement import Reshape, Transpose
from ....graph.passes.channels_first import merge_transposes, sink_below_movement
from ....graph.passes.convert_layout import sink_below_lookup
from ....graph.rewrite import Rewriter, Rewriting
from ..operators import AnyAdd, AnyMultiply, AnyRequantize, is_pointwise
from .axis_groups import axis_groups, wide_axes

__all__ = ["SINK_TRANSPOSES"]

OF_PIXELS = (AnyRequantize, RowSoftmax, Softmax)
"""Functions of the channels of each pixel."""


def _before(rewriter: Rewriter, name: str) -> tuple[str, tuple[int, ...]] | None:
    """Input and permutation of the transpose that makes ``name``; None if none does."""
    node = rewriter.graph.producer(name)
    if node is None or not isinstance(node.operator, Transpose):
        return None
    return node.inputs[0], node.operator.permutation


def _below_reshape(rewriter: Rewriter, node: Node) -> str | None:
    before = _before(rewriter, node.inputs[0]) if isinstance(node.operator, Reshape) else None
    if before is None:
        return None
    x, permutation = before
    shape, target = rewriter.graph.types[x].shape, rewriter.graph.types[node.output].shape
    order = _order(shape, permutation, target)
    if order is None:
        return None
    # Axes of one element stay where they are.
    wide = iter(order)
    places = [next(wide) if size > 1 else axis for axis, size in enumerate(target)]
    inner = Reshape(tuple(target[axis] for axis in places))
    reshaped = rewriter.builder.node(inner, (x,), f"{node.output}/turned", node.origin)
    back = Transpose(tuple(int(place) for place in np.argsort(places)))
    return rewriter.builder.node(back, (reshaped,), node.output, node.origin)


def _order(
    shape: tuple[int, ...], permutation: tuple[int, ...], target: tuple[int, ...]
) -> list[int] | None:
    """The axes of ``target`` with more than one element, in the order of those of ``shape``.

    None where ``target``, a shape of the transposed tensor, joins axes that are not neighbours in
    ``shape``.
    """
    groups = axis_groups([shape[axis] for axis in permutation], target)
    if groups is None:
        return None
    place = {axis: number for number, axis in enumerate(wide_axes(shape))}
    found = []
    for joined, split in groups:
        places = [place[permutation[axis]] for axis in joined]
        if places != list(range(places[0], places[0] + len(places))):
            return None
        found.append((places[0], split))
    return [axis for _, split in sorted(found) for axis in split]


def _below_pixels(rewriter: Rewriter, node: Node) -> str | None:
    operator = node.operator
    pointwise = is_pointwise(rewriter.graph, node)
    before = _before(rewriter, node.inputs[0]) if node.inputs else None
    if before is None or not (pointwise or isinstance(operator, OF_PIXELS)):
        return None
    x, permutation = before
    last = len(permutation) - 1
    if permutation[0] != 0 or permutation[last] != last:
        return None
    inputs = (x, *node.inputs[1:])
    inner = rewriter.builder.node(operator, inputs, f"{node.output}/turned", node.origin)
    return rewriter.builder.node(Transpose(permutation), (inner,), node.output, node.origin)


def _below_sum(rewriter: Rewriter, node: Node) -> str | None:
    if not isinstance(node.operator, AnyAdd | AnyMultiply):
        return None
    made = [_before(rewriter, name) for name in node.inputs]
    orders = {each[1] for each in made if each is not None}
    if len(orders) != 1:
        return None
    (order,) = orders
    back = tuple(int(place) for place in np.argsort(order))
    inputs, constants = [], rewriter.graph.constants
    for name, each in zip(node.inputs, made, strict=True):
        if each is not None:
            inputs.append(each[0])
        elif name in constants and constants[name].ndim == len(order):
            value = constants[name].transpose(back)
            inputs.append(rewriter.builder.constant(f"{name}/turned", value))
        else:
            return None
    kinds = rewriter.graph.types
    if any(kinds[name].rank != len(order) for name in inputs if name in kinds):
        return None
    inner = rewriter.builder.node(
        node.operator, tuple(inputs), f"{node.output}/turned", node.origin
    )
    return rewriter.builder.node(Transpose(order), (inner,), node.output, node.origin)


SINK_TRANSPOSES = Rewriting(
    "sink_transposes",
    (
        *(merge_transposes, sink_below_lookup, sink_below_movement),
        *(_below_reshape, _below_pixels, _below_sum),
    ),
)
"""See the module's docstring."""
