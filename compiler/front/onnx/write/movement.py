"""Operators that move elements about, and those that read and write where integers say."""

from collections.abc import Sequence

import numpy as np

from ....graph.operators.indexing import (
    Gather,
    GatherElements,
    GatherNd,
    ScatterElements,
    ScatterFunction,
    ScatterNd,
)
from ....graph.operators.movement import PadTensor, Slice
from .writing import Writing

__all__ = [
    "write_gather",
    "write_gather_elements",
    "write_gather_nd",
    "write_pad",
    "write_scatter_elements",
    "write_scatter_nd",
    "write_slice",
]

BEFORE_FIRST = -(1 << 62)
"""The end of a slice that goes backwards and takes the first element."""
REDUCTIONS = {ScatterFunction.REPLACE: "none", ScatterFunction.MULTIPLY: "mul"}


def write_slice(w: Writing, operator: Slice) -> str:
    """Every so many-th element from one to another."""
    (x,) = w.node.inputs
    starts, ends, axes, steps = [], [], [], []
    for axis, (size, start, step, count) in enumerate(
        zip(w.type(x).shape, operator.starts, operator.steps, operator.shape, strict=True)
    ):
        end = start + step * count
        if (start, step, count) != (0, 1, size):
            starts.append(start if count else 0)
            ends.append((end if end >= 0 else BEFORE_FIRST) if count else 0)
            axes.append(axis)
            steps.append(step if count else 1)
    if not axes:
        return x
    return w.emit("Slice", x, *map(w.integers, (starts, ends, axes, steps)))


def write_pad(w: Writing, operator: PadTensor) -> str:
    """More elements around."""
    x, value = w.node.inputs
    widths = w.integers([*operator.before, *operator.after])
    if operator.mode == "constant":
        return w.emit("Pad", x, widths, value)
    return w.emit("Pad", x, widths, mode=str(operator.mode))


def write_gather(w: Writing, operator: Gather) -> str:
    """Elements of one dimension."""
    x, indices = w.node.inputs
    size = w.type(x).shape[operator.axis]
    return w.emit("Gather", x, _inside(w, indices, [size]), axis=operator.axis)


def write_gather_elements(w: Writing, operator: GatherElements) -> str:
    """Single elements of one dimension; ONNX wants the other dimensions to be the same."""
    x, indices = w.node.inputs
    shape, wanted = w.type(x).shape, w.type(indices).shape
    places = _inside(w, indices, [shape[operator.axis]])
    cut = [axis for axis in range(len(shape)) if axis != operator.axis]
    if any(shape[axis] != wanted[axis] for axis in cut):
        ends = [wanted[axis] for axis in cut]
        x = w.emit("Slice", x, *map(w.integers, ([0] * len(cut), ends, cut)))
    return w.emit("GatherElements", x, places, axis=operator.axis)


def write_gather_nd(w: Writing, operator: GatherNd) -> str:
    """Elements by indices of several dimensions."""
    x, indices = w.node.inputs
    width = w.type(indices).shape[-1]
    sizes = w.type(x).shape[operator.batch : operator.batch + width]
    return w.emit("GatherND", x, _inside(w, indices, sizes), batch_dims=operator.batch)


def write_scatter_elements(w: Writing, operator: ScatterElements) -> str:
    """A copy with some elements changed."""
    x, indices, updates = w.node.inputs
    places = _inside(w, indices, [w.type(x).shape[operator.axis]])
    how = REDUCTIONS.get(operator.function, str(operator.function))
    return w.emit("ScatterElements", x, places, updates, axis=operator.axis, reduction=how)


def write_scatter_nd(w: Writing, operator: ScatterNd) -> str:
    """A copy with some elements changed, by indices of several dimensions."""
    x, indices, updates = w.node.inputs
    width = w.type(indices).shape[-1]
    how = REDUCTIONS.get(operator.function, str(operator.function))
    places = _inside(w, indices, w.type(x).shape[:width])
    return w.emit("ScatterND", x, places, updates, reduction=how)


def _inside(w: Writing, indices: str, sizes: Sequence[int]) -> str:
    """Indices beyond the ends as the nearest that are not; ONNX refuses them."""
    dtype = w.type(indices).dtype.numpy
    low, high = (np.array([sign * size - (sign > 0) for size in sizes], dtype) for sign in (-1, 1))
    if len(sizes) == 1:
        low, high = low.reshape(()), high.reshape(())
    value = w.value(indices)
    if value is None:
        return w.emit("Min", w.emit("Max", indices, low), high)
    inside = np.clip(value, low, high)
    return indices if np.array_equal(inside, value) else w.constant(inside, indices)
