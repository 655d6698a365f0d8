"""Converters of operators that read or write at indices which are data."""

from collections.abc import Mapping

import numpy as np

from ...dtypes import DType
from ...graph.operators.elementwise import BinaryFunction
from ...graph.operators.indexing import (
    Gather,
    GatherElements,
    GatherNd,
    ScatterElements,
    ScatterFunction,
    ScatterNd,
)
from ...graph.operators.movement import Concatenate, Iota
from ...graph.operators.reductions import ReduceFunction
from ...graph.operators.sorting import Positions, Sort
from .build import (
    add,
    binary,
    cast,
    normalise_axis,
    reshape,
    transpose,
)
from .context import Converter, ImportContext, Tensor, optional, required
from .movement import integers_at
from .node import OnnxNode
from .reductions import reduce

__all__ = ["INDEXING", "gather", "positions"]

Inputs = tuple[Tensor | None, ...]

FUNCTIONS = {
    "none": ScatterFunction.REPLACE,
    "add": ScatterFunction.ADD,
    "mul": ScatterFunction.MULTIPLY,
    "min": ScatterFunction.MIN,
    "max": ScatterFunction.MAX,
}


def gather(ctx: ImportContext, x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """``x`` along ``axis`` at ``indices``, which may be negative."""
    d = normalise_axis(axis, x.type.rank)
    return ctx.emit(Gather(d), x, indices)


def positions(ctx: ImportContext, condition: Tensor) -> Tensor:
    """Where ``condition``, bool[N], holds: int64 of as many as there are, by specialisation."""
    count = reduce(ctx, ReduceFunction.SUM, cast(ctx, condition, DType.INT64), (0,), False)
    return ctx.emit(Positions(int(ctx.value(count))), condition)


def convert_gather(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Whole slices."""
    x, indices = required(inputs, 2)
    return (gather(ctx, x, indices, node.integer("axis", 0)),)


def convert_gather_elements(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Element by element."""
    x, indices = required(inputs, 2)
    axis = normalise_axis(node.integer("axis", 0), x.type.rank)
    return (ctx.emit(GatherElements(axis), x, indices),)


def convert_gather_nd(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """By index vectors."""
    x, indices = required(inputs, 2)
    batch = node.integer("batch_dims", 0)
    return (ctx.emit(GatherNd(batch), x, cast(ctx, indices, DType.INT64)),)


def convert_scatter_elements(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Element by element."""
    x, indices, updates = required(inputs, 3)
    axis = normalise_axis(node.integer("axis", 0), x.type.rank)
    return (ctx.emit(ScatterElements(axis, _function(node)), x, indices, updates),)


def convert_scatter_nd(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """By index vectors."""
    x, indices, updates = required(inputs, 3)
    own = cast(ctx, indices, DType.INT64)
    return (ctx.emit(ScatterNd(_function(node)), x, own, updates),)


def convert_tensor_scatter(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """A cache with new entries written from ``write_indices`` on, or around its end."""
    past, update = required(inputs[:2], 2)
    starts = optional(inputs, 2)
    axis = normalise_axis(node.integer("axis", -2), past.type.rank)
    shape, size = update.type.shape, past.type.shape[axis]
    place = ctx.emit(Iota(shape, axis))
    if starts is not None:
        column = reshape(ctx, starts, (starts.type.shape[0], *(1,) * (len(shape) - 1)))
        place = add(ctx, place, cast(ctx, column, DType.INT64))
    if node.text("mode", "linear") == "circular":
        place = binary(ctx, BinaryFunction.MOD, place, size)
    return (ctx.emit(ScatterElements(axis, ScatterFunction.REPLACE), past, place, update),)


def convert_top_k(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The first of a sorted row; k is an attribute before opset 10, an input since."""
    (x,) = required(inputs[:1], 1)
    (count,) = integers_at(ctx, inputs, 1) or (node.integer("k", 1),)
    axis = normalise_axis(node.integer("axis", -1), x.type.rank)
    order = _last(axis, x.type.rank)
    moved = transpose(ctx, x, order)
    largest = bool(node.integer("largest", 1))
    results = ctx.emit_many(Sort(count, largest), moved)
    return tuple(transpose(ctx, each, _inverse(order)) for each in results)


def convert_compress(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The slices for which the condition holds."""
    x, condition = required(inputs, 2)
    if "axis" not in node.attributes:
        x, axis = reshape(ctx, x, (x.type.elements,)), 0
    else:
        axis = normalise_axis(node.integer("axis", 0), x.type.rank)
    return (ctx.emit(Gather(axis), x, positions(ctx, condition)),)


def convert_non_zero(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The indices of elements that are not 0, one row for each dimension."""
    (x,) = required(inputs, 1)
    flat = cast(ctx, reshape(ctx, x, (x.type.elements,)), DType.BOOL)
    place = positions(ctx, flat)
    count = place.type.elements
    rows: list[Tensor] = []
    for size in reversed(x.type.shape):
        own = binary(ctx, BinaryFunction.MOD, place, size)
        rows.insert(0, reshape(ctx, own, (1, count)))
        place = binary(ctx, BinaryFunction.DIV, place, size)
    if not rows:
        return (ctx.constant(np.zeros((0, count), np.int64)),)
    return (ctx.emit(Concatenate(0), *rows),)


def _function(node: OnnxNode) -> ScatterFunction:
    name = node.text("reduction", "none")
    return FUNCTIONS[name]


def _last(axis: int, rank: int) -> tuple[int, ...]:
    """The permutation that brings ``axis`` to the end."""
    return (*(d for d in range(rank) if d != axis), axis)


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(d) for d in range(len(order)))


INDEXING: Mapping[str, Converter] = {
    "Compress": convert_compress,
    "Gather": convert_gather,
    "GatherElements": convert_gather_elements,
    "GatherND": convert_gather_nd,
    "NonZero": convert_non_zero,
    "Scatter": convert_scatter_elements,
    "ScatterElements": convert_scatter_elements,
    "ScatterND": convert_scatter_nd,
    "TensorScatter": convert_tensor_scatter,
    "TopK": convert_top_k,
}
