"""Stored tensors in the order of dimensions that an operator takes."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...ir import GraphBuilder
from ...operators.indexing import Gather
from ...operators.integer.conversions import Quantize, Shift128
from ...operators.integer.products import RowProducts
from ...operators.integer.values import Lookup
from ...operators.movement import Concatenate, Reshape, Slice, Transpose
from ...operators.protocol import TensorOperator
from ...operators.table import INTEGER
from .values import NCHW_TO_NHWC, Floating, Integer, identity_order

__all__ = [
    "columns_of_groups",
    "grouped",
    "image_of_rows",
    "images",
    "inverted",
    "is_as_made",
    "join_tensors",
    "model_shape",
    "permuted",
    "reshaped_order",
    "rows_of_image",
    "to_model_order",
    "to_nhwc",
]

KEEPING = (Concatenate, Lookup, Reshape, Slice)
"""Operators whose result is stored as their operand is."""
MOVING = (Gather, Quantize, Shift128, Transpose)
"""Operators of the host, and others whose result may be stored otherwise."""

GROUPS_LAST = (0, 3, 4, 1, 2)
"""[N, groups, C, H, W] stored as an image is, the channels of its groups one after the other."""


def join_tensors(
    graph: GraphBuilder, tensors: Sequence[Integer], axis: int, stem: str, origin: str
) -> Integer:
    """Tensors one after the other along dimension ``axis`` of the model."""
    parts = images(graph, tensors, origin) if axis == 1 else None
    if parts:
        return grouped(graph, graph.node(Concatenate(3), parts, stem, origin), tensors[0], origin)
    order = _common_order(graph, tensors)
    names = tuple(permuted(graph, tensor, order, origin) for tensor in tensors)
    name = graph.node(Concatenate(order.index(axis)), names, stem, origin)
    return Integer(name, order, all(tensor.unsigned for tensor in tensors))


def _common_order(graph: GraphBuilder, tensors: Sequence[Integer]) -> tuple[int, ...]:
    """The order in which tensors are joined: that of images, or of rows where layers made rows and
    all else comes from the host, as a cache does.
    """
    rank = len(tensors[0].permutation)
    plain = identity_order(rank)
    made = [each for each in tensors if is_as_made(graph, each.name)]
    others = [each.name for each in tensors if each not in made]
    rows = made and all(each.permutation[-1] == rank - 1 for each in made)
    if not rows or not all(_is_of_input(graph, name) for name in others):
        return NCHW_TO_NHWC if rank == len(NCHW_TO_NHWC) else plain
    same = all(each.permutation == made[0].permutation for each in made)
    return made[0].permutation if same and not others else plain


def to_nhwc(graph: GraphBuilder, tensor: Integer, origin: str) -> str:
    """The model's NCHW tensor, stored as NHWC."""
    return permuted(graph, tensor, NCHW_TO_NHWC, origin)


def to_model_order(graph: GraphBuilder, tensor: Integer | Floating, origin: str) -> str:
    """The tensor in the model's own order of dimensions."""
    return permuted(graph, tensor, identity_order(len(tensor.permutation)), origin)


def images(graph: GraphBuilder, tensors: Sequence[Integer], origin: str) -> tuple[str, ...] | None:
    """Tensors [N, G, C, H, W] as images of G * C channels, NHWC; None for others, and where the
    numbers of channels differ.
    """
    shapes = [model_shape(graph, tensor) for tensor in tensors]
    if any(len(shape) != 5 or shape[2] != shapes[0][2] for shape in shapes):
        return None
    found = []
    for tensor, (count, groups, channels, height, width) in zip(tensors, shapes, strict=True):
        name = permuted(graph, tensor, GROUPS_LAST, origin)
        image = Reshape((count, height, width, groups * channels))
        found.append(_moved(graph, image, name, origin))
    return tuple(found)


def grouped(graph: GraphBuilder, image: str, like: Integer, origin: str) -> Integer:
    """An NHWC image as [N, G, C, H, W], with as many channels a group as ``like`` has."""
    channels = model_shape(graph, like)[2]
    *size, total = graph.types[image].shape
    name = graph.node(Reshape((*size, total // channels, channels)), (image,), image, origin)
    return Integer(name, GROUPS_LAST, like.unsigned)


def is_as_made(graph: GraphBuilder, name: str) -> bool:
    """True if a tensor is stored as a layer made it, its channels last, or is made of pixels of
    such a one; not so if the host or an operator of the model made it, or its channels were turned.
    """
    makers = {node.output: node for node in graph.nodes}
    while (maker := makers.get(name)) is not None and _keeps_channels(maker.operator):
        name = maker.inputs[0]
    if maker is None or isinstance(maker.operator, MOVING):
        return False
    made_by_layer = isinstance(maker.operator, INTEGER)
    total = makers.get(maker.inputs[0])
    return made_by_layer and not (total is not None and isinstance(total.operator, RowProducts))


def _is_of_input(graph: GraphBuilder, name: str) -> bool:
    """True if a tensor is an input of the model, perhaps moved or quantised by the host."""
    makers = {node.output: node for node in graph.nodes}
    while (maker := makers.get(name)) is not None and isinstance(maker.operator, MOVING):
        name = maker.inputs[0]
    return name in graph.inputs


def _keeps_channels(operator: TensorOperator) -> bool:
    """True if what is last in its operand does so in its result."""
    if isinstance(operator, Transpose):
        return operator.permutation[-1] == len(operator.permutation) - 1
    return isinstance(operator, KEEPING)


def columns_of_groups(graph: GraphBuilder, tensor: Integer, origin: str) -> Integer:
    """[N, G, C, H, W] as an image of W * G columns: those of the groups in turns."""
    count, groups, channels, height, width = model_shape(graph, tensor)
    name = permuted(graph, tensor, GROUPS_LAST, origin)
    image = _moved(graph, Reshape((count, height, width * groups, channels)), name, origin)
    return Integer(image, NCHW_TO_NHWC, tensor.unsigned)


def image_of_rows(graph: GraphBuilder, tensor: Integer, axis: int, origin: str) -> Integer:
    """Rows along dimension ``axis`` of the model, of [N, C, W] (2) or [N, T, C] (1), as an image
    [N, C, 1, W] one pixel high.
    """
    name = permuted(graph, tensor, (0, axis, 3 - axis), origin)
    count, *size = graph.types[name].shape
    image = _moved(graph, Reshape((count, 1, *size)), name, origin)
    return replace(tensor, name=image, permutation=NCHW_TO_NHWC)


def inverted(graph: GraphBuilder, tensor: Integer, origin: str) -> Integer:
    """All bits of the bytes turned, which reverses their order."""
    turned = np.invert(np.arange(-128, 128)).astype(np.int8)
    table = graph.constant(f"{tensor.name}/inverse", turned)
    name = graph.node(Lookup(), (tensor.name, table), f"{tensor.name}/inverted", origin)
    return replace(tensor, name=name)


def rows_of_image(
    graph: GraphBuilder, image: Integer, axis: int, stem: str, origin: str
) -> Integer:
    """An NHWC image one pixel high as rows again, as ``image_of_rows`` was given them."""
    count, _, *size = graph.types[image.name].shape
    name = graph.node(Reshape((count, *size)), (image.name,), stem, origin)
    return replace(image, name=name, permutation=(0, axis, 3 - axis))


def permuted(
    graph: GraphBuilder, tensor: Integer | Floating, wanted: tuple[int, ...], origin: str
) -> str:
    """The tensor stored in the order ``wanted``; a reshape when only dimensions of size 1 move."""
    if tensor.permutation == wanted:
        return tensor.name
    step = tuple(tensor.permutation.index(axis) for axis in wanted)
    shape = graph.types[tensor.name].shape
    moved = [axis for axis in step if shape[axis] != 1]
    if moved == sorted(moved):
        target = tuple(shape[axis] for axis in step)
        if target == shape:
            return tensor.name
        return _moved(graph, Reshape(target), tensor.name, origin)
    return _moved(graph, Transpose(step), tensor.name, origin)


def model_shape(graph: GraphBuilder, tensor: Integer | Floating) -> tuple[int, ...]:
    """The tensor's shape in the model."""
    shape = graph.types[tensor.name].shape
    return tuple(shape[tensor.permutation.index(axis)] for axis in range(len(shape)))


def reshaped_order(
    before: tuple[int, ...], after: tuple[int, ...], stored: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """How a tensor is stored for a reshape, and then its result: as far as possible as it is.

    before, after: its shapes in the model.  stored: the permutation, as of ``Integer``.  Dimensions
    that become one, or were one, must be side by side; what is last stays last, as channels and
    the heads around them do.  None where that is impossible.
    """
    order = [axis for axis in stored if before[axis] > 1]
    groups = {axis: group for group in _reshaped_groups(before, after) for axis in group[0]}
    if not order or len(groups) < len(order):
        return None
    last = groups[order[-1]]
    each = {group[0][0]: group for axis in order if (group := groups[axis]) is not last}
    ordered = [*each.values(), last]
    arranged = [axis for axes, _ in ordered for axis in axes]
    if arranged != order:
        if arranged[-1] != order[-1]:
            return None
        stored = (*(axis for axis, size in enumerate(before) if size == 1), *arranged)
    found = [axis for _, made in ordered for axis in made]
    if after[0] == 1:
        # A batch of one comes first.
        found = [0, *(axis for axis in found if axis)]
    return (stored, tuple(found)) if sorted(found) == list(range(len(after))) else None


def _reshaped_groups(
    before: tuple[int, ...], after: tuple[int, ...]
) -> list[tuple[list[int], list[int]]]:
    """Dimensions above 1 of a tensor, and those that a reshape makes of them, with the ones of size
    1 in front of them; those at the end go with the last.
    """
    groups = list[tuple[list[int], list[int]]]()
    left = [axis for axis, size in enumerate(before) if size > 1]
    axes, made, have, want = list[int](), list[int](), 1, 1
    for axis, size in enumerate(after):
        made.append(axis)
        want *= size
        while have < want and left:
            axes.append(left.pop(0))
            have *= before[axes[-1]]
        if have == want and axes:
            groups.append((axes, made))
            axes, made, have, want = [], [], 1, 1
    if made and groups:
        groups[-1][1].extend(made)
    return groups


def _moved(graph: GraphBuilder, operator: Reshape | Transpose, name: str, origin: str) -> str:
    """``operator`` of the tensor ``name``; the one that is there, if there is one."""
    for node in graph.nodes:
        if node.inputs == (name,) and node.operator == operator:
            return node.output
    return graph.node(operator, (name,), name, origin)
