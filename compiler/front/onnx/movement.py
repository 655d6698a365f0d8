"""Converters of operators that move elements, and of those that only concern shapes."""

from collections.abc import Mapping
from math import prod

import numpy as np

from ...graph.operators.movement import Concatenate, PadMode, PadTensor, Slice, Tile
from .build import broadcast, normalise_axis, reshape, scalar, slice_axis, transpose
from .context import Converter, ImportContext, Tensor, optional, required
from .node import OnnxNode

__all__ = ["MOVEMENT", "integers_at"]

Inputs = tuple[Tensor | None, ...]


def integers_at(ctx: ImportContext, inputs: Inputs, place: int) -> tuple[int, ...] | None:
    """The value of an input that determines a shape; None when it is left out."""
    tensor = optional(inputs, place)
    if tensor is None:
        return None
    return tuple(int(n) for n in ctx.value(tensor).reshape(-1))


def convert_shape(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The input's shape, or the part from ``start`` to ``end``: a constant."""
    (x,) = required(inputs, 1)
    start, end = node.integer("start", 0), node.integer("end", x.type.rank)
    return (ctx.constant(np.asarray(x.type.shape[start:end], np.int64)),)


def convert_size(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The input's number of elements: a constant."""
    (x,) = required(inputs, 1)
    return (ctx.constant(np.asarray(x.type.elements, np.int64)),)


def convert_reshape(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """0 keeps a dimension, unless ``allowzero``; -1 is what the others leave."""
    (x,) = required(inputs, 1)
    wanted = integers_at(ctx, inputs, 1)
    if wanted is None:
        wanted = node.integers("shape", ())
    keep = not node.integer("allowzero", 0)
    shape = [x.type.shape[d] if n == 0 and keep else n for d, n in enumerate(wanted)]
    if shape.count(-1) > 1:
        raise ValueError(f"shape {list(wanted)} has -1 more than once")
    if -1 in shape:
        rest = prod(n for n in shape if n != -1)
        shape[shape.index(-1)] = x.type.elements // rest if rest else 0
    return (reshape(ctx, x, tuple(shape)),)


def convert_flatten(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Two dimensions: those before ``axis``, and the rest."""
    (x,) = required(inputs, 1)
    axis = node.integer("axis", 1)
    axis += x.type.rank if axis < 0 else 0
    return (reshape(ctx, x, (prod(x.type.shape[:axis]), prod(x.type.shape[axis:]))),)


def convert_squeeze(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Drop dimensions of size 1."""
    (x,) = required(inputs[:1], 1)
    axes = _axes(ctx, node, inputs)
    rank = x.type.rank
    if axes is None:
        dropped = {d for d, size in enumerate(x.type.shape) if size == 1}
    else:
        dropped = {normalise_axis(axis, rank) for axis in axes}
    wrong = [d for d in dropped if x.type.shape[d] != 1]
    if wrong:
        raise ValueError(f"dimension {wrong[0]} of {x.type} is not 1")
    shape = tuple(size for d, size in enumerate(x.type.shape) if d not in dropped)
    return (reshape(ctx, x, shape),)


def convert_unsqueeze(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Put in dimensions of size 1."""
    (x,) = required(inputs[:1], 1)
    axes = _axes(ctx, node, inputs) or ()
    rank = x.type.rank + len(axes)
    places = {normalise_axis(axis, rank) for axis in axes}
    sizes = iter(x.type.shape)
    return (reshape(ctx, x, tuple(1 if d in places else next(sizes) for d in range(rank))),)


def convert_transpose(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Dimensions in another order, by default reversed."""
    (x,) = required(inputs, 1)
    rank = x.type.rank
    order = node.integers("perm", tuple(reversed(range(rank))))
    return (transpose(ctx, x, tuple(normalise_axis(axis, rank) for axis in order)),)


def convert_expand(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Broadcast both ways."""
    (x,) = required(inputs[:1], 1)
    wanted = integers_at(ctx, inputs, 1) or ()
    return (broadcast(ctx, x, np.broadcast_shapes(x.type.shape, wanted)),)


def convert_concat(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Operands one after the other."""
    operands = required(inputs, len(inputs))
    axis = normalise_axis(node.integer("axis", 1), operands[0].type.rank)
    return (operands[0] if len(operands) == 1 else ctx.emit(Concatenate(axis), *operands),)


def convert_slice(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Python's slices; bounds are attributes before opset 10, inputs since."""
    (x,) = required(inputs[:1], 1)
    if ctx.opset < 10:
        starts, ends = node.integers("starts", ()), node.integers("ends", ())
        axes = node.integers("axes", tuple(range(len(starts))))
        steps: tuple[int, ...] = (1,) * len(starts)
    else:
        starts, ends = integers_at(ctx, inputs, 1) or (), integers_at(ctx, inputs, 2) or ()
        axes = integers_at(ctx, inputs, 3) or tuple(range(len(starts)))
        steps = integers_at(ctx, inputs, 4) or (1,) * len(starts)
    first, stride, shape = [0] * x.type.rank, [1] * x.type.rank, list(x.type.shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        d = normalise_axis(axis, x.type.rank)
        chosen = range(x.type.shape[d])[slice(start, end, step)]
        first[d], stride[d], shape[d] = (chosen.start if chosen else 0), step, len(chosen)
    if tuple(shape) == x.type.shape and all(step == 1 for step in stride):
        return (x,)
    return (ctx.emit(Slice(tuple(first), tuple(stride), tuple(shape)), x),)


def convert_split(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Slices one after the other."""
    (x,) = required(inputs[:1], 1)
    axis = normalise_axis(node.integer("axis", 0), x.type.rank)
    size = x.type.shape[axis]
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
        slice_axis(ctx, x, axis, start, part) for start, part in zip(starts, sizes, strict=True)
    )


def convert_pad(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Negative sizes cut off."""
    (x,) = required(inputs[:1], 1)
    rank = x.type.rank
    if ctx.opset < 11:
        pads = node.integers("pads", node.integers("paddings", ()))
        value = scalar(ctx, node.real("value", 0), x)
        axes: tuple[int, ...] | None = None
    else:
        pads = integers_at(ctx, inputs, 1) or ()
        value = optional(inputs, 2) or scalar(ctx, 0, x)
        axes = integers_at(ctx, inputs, 3)
    places = [normalise_axis(axis, rank) for axis in (range(rank) if axes is None else axes)]
    before, after = [0] * rank, [0] * rank
    for n, d in enumerate(places):
        before[d], after[d] = pads[n], pads[len(places) + n]
    for d in range(rank):
        low, high = min(before[d], 0), min(after[d], 0)
        x = slice_axis(ctx, x, d, -low, max(0, x.type.shape[d] + low + high))
    mode = PadMode(node.text("mode", "constant"))
    grown = tuple(max(n, 0) for n in before), tuple(max(n, 0) for n in after)
    return (ctx.emit(PadTensor(*grown, mode), x, reshape(ctx, value, ())),)


def convert_tile(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Repeats of each dimension."""
    (x,) = required(inputs[:1], 1)
    return (ctx.emit(Tile(integers_at(ctx, inputs, 1) or ()), x),)


def convert_depth_to_space(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Blocks of channels become pixels."""
    (x,) = required(inputs, 1)
    batch, channels, height, width = x.type.shape
    block = node.integer("blocksize", 1)
    depth = channels // (block * block)
    if node.text("mode", "DCR") == "DCR":
        split = reshape(ctx, x, (batch, block, block, depth, height, width))
        moved = transpose(ctx, split, (0, 3, 4, 1, 5, 2))
    else:
        split = reshape(ctx, x, (batch, depth, block, block, height, width))
        moved = transpose(ctx, split, (0, 1, 4, 2, 5, 3))
    return (reshape(ctx, moved, (batch, depth, height * block, width * block)),)


def convert_space_to_depth(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Blocks of pixels become channels."""
    (x,) = required(inputs, 1)
    batch, channels, height, width = x.type.shape
    block = node.integer("blocksize", 1)
    rows, columns = height // block, width // block
    split = reshape(ctx, x, (batch, channels, rows, block, columns, block))
    depth_first = node.text("mode", "DCR") == "DCR"
    moved = transpose(ctx, split, (0, 3, 5, 1, 2, 4) if depth_first else (0, 1, 3, 5, 2, 4))
    return (reshape(ctx, moved, (batch, channels * block * block, rows, columns)),)


def convert_center_crop_pad(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Cut or pad each axis around its centre."""
    (x,) = required(inputs[:1], 1)
    rank = x.type.rank
    sizes = integers_at(ctx, inputs, 1) or ()
    axes = node.integers("axes", tuple(range(rank)))
    before, after = [0] * rank, [0] * rank
    for axis, size in zip(axes, sizes, strict=True):
        d = normalise_axis(axis, rank)
        extra = size - x.type.shape[d]
        if extra > 0:
            before[d], after[d] = extra // 2, extra - extra // 2
        elif extra < 0:
            x = slice_axis(ctx, x, d, -extra // 2, size)
    return (ctx.emit(PadTensor(tuple(before), tuple(after)), x, scalar(ctx, 0, x)),)


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
