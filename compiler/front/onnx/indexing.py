"""Converters of operators that read or write at indices which are data."""

from collections.abc import Mapping

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term, concatenate
from ...graph.operators.indexing import GatherNd, ScatterElements, ScatterFunction, ScatterNd
from ...graph.operators.movement import Iota
from ...graph.operators.sorting import Positions, Sort
from .context import Converter, ImportContext
from .inputs import Inputs, normalise_axis, optional_term, terms
from .movement import integers_at
from .node import OnnxNode

__all__ = ["INDEXING", "positions"]

FUNCTIONS = {
    "none": ScatterFunction.REPLACE,
    "add": ScatterFunction.ADD,
    "mul": ScatterFunction.MULTIPLY,
    "min": ScatterFunction.MIN,
    "max": ScatterFunction.MAX,
}


def positions(condition: Term) -> Term:
    """Where ``condition``, bool[N], holds: int64 of as many as there are, by specialisation."""
    context = condition.context
    count = int(context.value(condition.cast(DType.INT64).sum(0).tensor))
    return Term(context, context.emit(Positions(count), condition.tensor))


def convert_gather(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Whole slices."""
    x, indices = terms(ctx, inputs, 2)
    return (x.take(indices, normalise_axis(node.integer("axis", 0), x.rank)).tensor,)


def convert_gather_elements(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Element by element."""
    x, indices = terms(ctx, inputs, 2)
    return (x.take_elements(indices, normalise_axis(node.integer("axis", 0), x.rank)).tensor,)


def convert_gather_nd(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """By index vectors."""
    x, indices = terms(ctx, inputs, 2)
    operator = GatherNd(node.integer("batch_dims", 0))
    return (ctx.emit(operator, x.tensor, indices.cast(DType.INT64).tensor),)


def convert_scatter_elements(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Element by element."""
    x, indices, updates = terms(ctx, inputs, 3)
    operator = ScatterElements(normalise_axis(node.integer("axis", 0), x.rank), _function(node))
    return (ctx.emit(operator, x.tensor, indices.tensor, updates.tensor),)


def convert_scatter_nd(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """By index vectors."""
    x, indices, updates = terms(ctx, inputs, 3)
    own = indices.cast(DType.INT64)
    return (ctx.emit(ScatterNd(_function(node)), x.tensor, own.tensor, updates.tensor),)


def convert_tensor_scatter(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """A cache with new entries written from ``write_indices`` on, or around its end."""
    past, update = terms(ctx, inputs[:2], 2)
    starts = optional_term(ctx, inputs, 2)
    axis = normalise_axis(node.integer("axis", -2), past.rank)
    place = Term(ctx, ctx.emit(Iota(update.shape, axis)))
    if starts is not None:
        column = starts.reshape(starts.shape[0], *(1,) * (update.rank - 1))
        place = place + column.cast(DType.INT64)
    if node.text("mode", "linear") == "circular":
        place = place % past.shape[axis]
    return (past.scatter(axis, place, update).tensor,)


def convert_top_k(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The first of a sorted row; k is an attribute before opset 10, an input since."""
    (x,) = terms(ctx, inputs[:1], 1)
    (count,) = integers_at(ctx, inputs, 1) or (node.integer("k", 1),)
    axis = normalise_axis(node.integer("axis", -1), x.rank)
    operator = Sort(count, bool(node.integer("largest", 1)))
    results = ctx.emit_many(operator, x.move_axis(axis, -1).tensor)
    return tuple(Term(ctx, each).move_axis(-1, axis).tensor for each in results)


def convert_compress(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The slices for which the condition holds."""
    x, condition = terms(ctx, inputs, 2)
    if "axis" not in node.attributes:
        x, axis = x.reshape(-1), 0
    else:
        axis = normalise_axis(node.integer("axis", 0), x.rank)
    return (x.take(positions(condition), axis).tensor,)


def convert_non_zero(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The indices of elements that are not 0, one row for each dimension."""
    (x,) = terms(ctx, inputs, 1)
    place = positions(x.reshape(-1).cast(DType.BOOL))
    (count,) = place.shape
    rows: list[Term] = []
    for size in reversed(x.shape):
        rows.insert(0, (place % size).reshape(1, count))
        place = place / size
    if not rows:
        return (ctx.constant(np.zeros((0, count), np.int64)),)
    return (concatenate(rows, 0).tensor,)


def _function(node: OnnxNode) -> ScatterFunction:
    name = node.text("reduction", "none")
    return FUNCTIONS[name]


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
