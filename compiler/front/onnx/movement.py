"""Converters of operators that move elements, and of those that only concern shapes."""

from collections.abc import Mapping
from math import prod

import numpy as np

from ...graph.formulas import concatenate
from ...graph.operators.movement import PadMode, PadTensor, Slice
from .context import Converter, ImportContext, optional
from .inputs import Inputs, normalise_axis, optional_term, scalar, terms
from .node import OnnxNode

__all__ = ["MOVEMENT", "integers_at"]


def integers_at(ctx: ImportContext, inputs: Inputs, place: int) -> tuple[int, ...] | None:
    """The value of an input that determines a shape; None when it is left out."""
    tensor = optional(inputs, place)
    if tensor is None:
        return None
    return tuple(int(n) for n in ctx.value(tensor).reshape(-1))


def convert_shape(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The input's shape, or the part from ``start`` to ``end``: a constant."""
    (x,) = terms(ctx, inputs, 1)
    start, end = node.integer("start", 0), node.integer("end", x.rank)
    return (ctx.constant(np.asarray(x.shape[start:end], np.int64)),)


def convert_size(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The input's number of elements: a constant."""
    (x,) = terms(ctx, inputs, 1)
    return (ctx.constant(np.asarray(x.tensor.type.elements, np.int64)),)


def convert_reshape(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """0 keeps a dimension, unless ``allowzero``; -1 is what the others leave."""
    (x,) = terms(ctx, inputs, 1)
    wanted = integers_at(ctx, inputs, 1)
    if wanted is None:
        wanted = node.integers("shape", ())
    keep = not node.integer("allowzero", 0)
    shape = [x.shape[d] if n == 0 and keep else n for d, n in enumerate(wanted)]
    if shape.count(-1) > 1:
        raise ValueError(f"shape {list(wanted)} has -1 more than once")
    if -1 in shape:
        rest = prod(n for n in shape if n != -1)
        shape[shape.index(-1)] = x.tensor.type.elements // rest if rest else 0
    return (x.reshape(*shape).tensor,)


def convert_flatten(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Two dimensions: those before ``axis``, and the rest."""
    (x,) = terms(ctx, inputs, 1)
    axis = node.integer("axis", 1)
    axis += x.rank if axis < 0 else 0
    return (x.reshape(prod(x.shape[:axis]), prod(x.shape[axis:])).tensor,)


def convert_squeeze(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Drop dimensions of size 1."""
    (x,) = terms(ctx, inputs[:1], 1)
    axes = _axes(ctx, node, inputs)
    rank = x.rank
    if axes is None:
        dropped = {d for d, size in enumerate(x.shape) if size == 1}
    else:
        dropped = {normalise_axis(axis, rank) for axis in axes}
    wrong = [d for d in dropped if x.shape[d] != 1]
    if wrong:
        raise ValueError(f"dimension {wrong[0]} of {x.tensor.type} is not 1")
    kept = (size for d, size in enumerate(x.shape) if d not in dropped)
    return (x.reshape(*kept).tensor,)


def convert_unsqueeze(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Put in dimensions of size 1."""
    (x,) = terms(ctx, inputs[:1], 1)
    axes = _axes(ctx, node, inputs) or ()
    rank = x.rank + len(axes)
    return (x.unsqueeze(*(normalise_axis(axis, rank) for axis in axes)).tensor,)


def convert_transpose(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Dimensions in another order, by default reversed."""
    (x,) = terms(ctx, inputs, 1)
    rank = x.rank
    order = node.integers("perm", tuple(reversed(range(rank))))
    return (x.transpose(*(normalise_axis(axis, rank) for axis in order)).tensor,)


def convert_expand(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Broadcast both ways."""
    (x,) = terms(ctx, inputs[:1], 1)
    wanted = integers_at(ctx, inputs, 1) or ()
    return (x.expand(*np.broadcast_shapes(x.shape, wanted)).tensor,)


def convert_concat(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Operands one after the other."""
    operands = terms(ctx, inputs, len(inputs))
    axis = normalise_axis(node.integer("axis", 1), operands[0].rank)
    return (concatenate(operands, axis).tensor,)


def convert_slice(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Python's slices; bounds are attributes before opset 10, inputs since."""
    (x,) = terms(ctx, inputs[:1], 1)
    if ctx.opset < 10:
        starts, ends = node.integers("starts", ()), node.integers("ends", ())
        axes = node.integers("axes", tuple(range(len(starts))))
        steps: tuple[int, ...] = (1,) * len(starts)
    else:
        starts, ends = integers_at(ctx, inputs, 1) or (), integers_at(ctx, inputs, 2) or ()
        axes = integers_at(ctx, inputs, 3) or tuple(range(len(starts)))
        steps = integers_at(ctx, inputs, 4) or (1,) * len(starts)
    first, stride, shape = [0] * x.rank, [1] * x.rank, list(x.shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        d = normalise_axis(axis, x.rank)
        chosen = range(x.shape[d])[slice(start, end, step)]
        first[d], stride[d], shape[d] = (chosen.start if chosen else 0), step, len(chosen)
    if tuple(shape) == x.shape and all(step == 1 for step in stride):
        return (x.tensor,)
    return (ctx.emit(Slice(tuple(first), tuple(stride), tuple(shape)), x.tensor),)


def convert_split(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Slices one after the other."""
    (x,) = terms(ctx, inputs[:1], 1)
    axis = normalise_axis(node.integer("axis", 0), x.rank)
    size = x.shape[axis]
    sizes = integers_at(ctx, inputs, 1) or node.integers("split", ())
    if not sizes:
        count = node.integer("num_outputs", len(node.outputs))
        if count != len(node.outputs):
            raise ValueError(f"{count} parts for {len(node.outputs)} outputs")
        part = -(-size // count)
        sizes = tuple(min(part, max(0, size - part * n)) for n in range(count))
    if sum(sizes) != size:
        raise ValueError(f"parts of {list(sizes)} of a dimension of {size}")
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    return tuple(
        x.slice(axis, start, start + part).tensor for start, part in zip(starts, sizes, strict=True)
    )


def convert_pad(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Negative sizes cut off."""
    (x,) = terms(ctx, inputs[:1], 1)
    rank = x.rank
    if ctx.opset < 11:
        pads = node.integers("pads", node.integers("paddings", ()))
        value = scalar(ctx, node.real("value", 0), x.dtype)
        axes: tuple[int, ...] | None = None
    else:
        pads = integers_at(ctx, inputs, 1) or ()
        value = optional_term(ctx, inputs, 2) or scalar(ctx, 0, x.dtype)
        axes = integers_at(ctx, inputs, 3)
    places = [normalise_axis(axis, rank) for axis in (range(rank) if axes is None else axes)]
    before, after = [0] * rank, [0] * rank
    for n, d in enumerate(places):
        before[d], after[d] = pads[n], pads[len(places) + n]
    for d in range(rank):
        low, high = min(before[d], 0), min(after[d], 0)
        x = x.slice(d, -low, max(-low, x.shape[d] + high))
    mode = PadMode(node.text("mode", "constant"))
    grown = tuple(max(n, 0) for n in before), tuple(max(n, 0) for n in after)
    return (ctx.emit(PadTensor(*grown, mode), x.tensor, value.reshape().tensor),)


def convert_tile(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Repeats of each dimension."""
    (x,) = terms(ctx, inputs[:1], 1)
    return (x.tile(*(integers_at(ctx, inputs, 1) or ())).tensor,)


def convert_depth_to_space(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Blocks of channels become pixels."""
    (x,) = terms(ctx, inputs, 1)
    batch, channels, height, width = x.shape
    block = node.integer("blocksize", 1)
    depth = channels // (block * block)
    if node.text("mode", "DCR") == "DCR":
        moved = x.reshape(batch, block, block, depth, height, width).transpose(0, 3, 4, 1, 5, 2)
    else:
        moved = x.reshape(batch, depth, block, block, height, width).transpose(0, 1, 4, 2, 5, 3)
    return (moved.reshape(batch, depth, height * block, width * block).tensor,)


def convert_space_to_depth(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Blocks of pixels become channels."""
    (x,) = terms(ctx, inputs, 1)
    batch, channels, height, width = x.shape
    block = node.integer("blocksize", 1)
    rows, columns = height // block, width // block
    split = x.reshape(batch, channels, rows, block, columns, block)
    depth_first = node.text("mode", "DCR") == "DCR"
    moved = split.transpose(*((0, 3, 5, 1, 2, 4) if depth_first else (0, 1, 3, 5, 2, 4)))
    return (moved.reshape(batch, channels * block * block, rows, columns).tensor,)


def convert_center_crop_pad(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Cut or pad each axis around its centre."""
    (x,) = terms(ctx, inputs[:1], 1)
    rank = x.rank
    sizes = integers_at(ctx, inputs, 1) or ()
    axes = node.integers("axes", tuple(range(rank)))
    before, after = [0] * rank, [0] * rank
    for axis, size in zip(axes, sizes, strict=True):
        d = normalise_axis(axis, rank)
        extra = size - x.shape[d]
        if extra > 0:
            before[d], after[d] = extra // 2, extra - extra // 2
        elif extra < 0:
            x = x.slice(d, -extra // 2, -extra // 2 + size)
    pad = PadTensor(tuple(before), tuple(after))
    return (ctx.emit(pad, x.tensor, scalar(ctx, 0, x.dtype).tensor),)


def _axes(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> tuple[int, ...] | None:
    """Attribute before opset 13, input since."""
    if ctx.opset < 13:
        return node.integers("axes", ()) if "axes" in node.attributes else None
    return integers_at(ctx, inputs, 1)


MOVEMENT: Mapping[str, Converter] = {
    "CenterCropPad": convert_center_crop_pad,
    "Concat": convert_concat,
    "DepthToSpace": convert_depth_to_space,
    "Expand": convert_expand,
    "Flatten": convert_flatten,
    "Pad": convert_pad,
    "Reshape": convert_reshape,
    "Shape": convert_shape,
    "Size": convert_size,
    "Slice": convert_slice,
    "SpaceToDepth": convert_space_to_depth,
    "Split": convert_split,
    "Squeeze": convert_squeeze,
    "Tile": convert_tile,
    "Transpose": convert_transpose,
    "Unsqueeze": convert_unsqueeze,
}
