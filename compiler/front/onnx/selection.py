"""Converters of operators that select: boxes, distinct elements, parts of sequences."""

from collections.abc import Mapping

import numpy as np

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.operators.elementwise import BinaryFunction
from ...graph.operators.indexing import GatherElements, ScatterElements, ScatterFunction
from ...graph.operators.movement import Concatenate, Iota
from ...graph.operators.reductions import Cumulative, ReduceFunction
from ...graph.operators.selection import SuppressOverlaps
from ...graph.operators.sorting import Sort
from .build import (
    add,
    binary,
    broadcast,
    cast,
    less,
    maximum,
    minimum,
    mul,
    normalise_axis,
    reshape,
    scalar,
    slice_axis,
    sub,
    transpose,
    where,
)
from .context import Converter, ImportContext, Tensor, optional, required
from .indexing import gather, positions
from .node import OnnxNode
from .reductions import reduce

__all__ = ["SELECTION"]

Inputs = tuple[Tensor | None, ...]

MOST_COLUMNS = 4096
"""Columns of slices that are sorted, at most: each takes a sort."""


def convert_non_max_suppression(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """As many rows as are chosen, by specialisation."""
    boxes, scores = required(inputs[:2], 2)
    count = optional(inputs, 2)
    limit = 0 if count is None else int(ctx.value(count).reshape(-1)[0])
    nought = scalar(ctx, 0, DType.FLOAT32)
    overlap, least = (optional(inputs, place) or nought for place in (3, 4))
    if optional(inputs, 4) is None:
        least = scalar(ctx, -np.inf, DType.FLOAT32)
    if limit <= 0:
        return (ctx.constant(np.zeros((0, 3), np.int64)),)
    first, second = (slice_axis(ctx, boxes, 2, start, 2) for start in (0, 2))
    if node.integer("center_point_box", 0):
        half = mul(ctx, second, 0.5)
        first, second = sub(ctx, first, half), add(ctx, first, half)
    corners = minimum(ctx, first, second), maximum(ctx, first, second)
    ordered, order = ctx.emit_many(Sort(scores.type.shape[2], True), scores)
    rows, total = ctx.emit_many(
        SuppressOverlaps(min(limit, scores.type.shape[2])),
        ctx.emit(Concatenate(2), *corners),
        ordered,
        order,
        reshape(ctx, overlap, ()),
        reshape(ctx, least, ()),
    )
    return (slice_axis(ctx, rows, 0, 0, int(ctx.value(total))),)


def convert_reverse_sequence(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The first elements of each row of the batch in reverse, as many as its length says."""
    x, lengths = required(inputs, 2)
    batch, time = node.integer("batch_axis", 1), node.integer("time_axis", 0)
    sizes = tuple(x.type.shape[d] if d == batch else 1 for d in range(x.type.rank))
    length = reshape(ctx, cast(ctx, lengths, DType.INT64), sizes)
    place = ctx.emit(Iota(x.type.shape, time))
    mirrored = sub(ctx, sub(ctx, length, 1), place)
    source = where(ctx, less(ctx, place, length), mirrored, place)
    return (ctx.emit(GatherElements(time), x, source),)


def convert_unique(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Distinct elements, or slices along an axis: sorted, then those that differ from the last."""
    (x,) = required(inputs[:1], 1)
    if "axis" in node.attributes:
        axis = normalise_axis(node.integer("axis", 0), x.type.rank)
    else:
        x, axis = reshape(ctx, x, (x.type.elements,)), 0
    size = x.type.shape[axis]
    order = (axis, *(d for d in range(x.type.rank) if d != axis))
    rows = reshape(ctx, transpose(ctx, x, order), (size, x.type.elements // max(size, 1)))
    ranked = _sorted_rows(ctx, rows)
    ordered = gather(ctx, rows, ranked, 0)
    starts = _first_of_runs(ctx, ordered)
    begins = positions(ctx, starts)
    first = gather(ctx, ranked, begins, 0)
    count = begins.type.elements
    line = sub(ctx, ctx.emit(Cumulative(ReduceFunction.SUM, 0), cast(ctx, starts, DType.INT64)), 1)
    ctx.require_room(size)
    empty = ctx.constant(np.zeros(size, np.int64))
    scatter = ScatterElements(0, ScatterFunction.REPLACE)
    inverse = ctx.emit(scatter, empty, ranked, line)
    ends = (slice_axis(ctx, begins, 0, 1, count - 1), ctx.constant(np.full(1, size, np.int64)))
    counts = sub(ctx, ctx.emit(Concatenate(0), *ends), begins) if count > 1 else _whole(ctx, size)
    if not node.integer("sorted", 1):
        _, appearance = ctx.emit_many(Sort(count), first)
        first, counts = (gather(ctx, each, appearance, 0) for each in (first, counts))
        blank = ctx.constant(np.zeros(count, np.int64))
        renamed = ctx.emit(scatter, blank, appearance, ctx.emit(Iota((count,), 0)))
        inverse = gather(ctx, renamed, inverse, 0)
    return gather(ctx, x, first, axis), first, inverse, counts


def _whole(ctx: ImportContext, size: int) -> Tensor:
    return ctx.constant(np.full(1, size, np.int64))


def _sorted_rows(ctx: ImportContext, rows: Tensor) -> Tensor:
    """The order of rows: stable sorts by each column, the last column first."""
    size, width = rows.type.shape
    if width > MOST_COLUMNS:
        raise UnsupportedOperatorError(
            f"node {ctx.origin!r}: distinct slices of {width} elements; required at most "
            f"{MOST_COLUMNS}"
        )
    order = ctx.emit(Iota((size,), 0))
    for column in reversed(range(width)):
        keys = reshape(ctx, slice_axis(ctx, rows, 1, column, 1), (size,))
        _, moved = ctx.emit_many(Sort(size), gather(ctx, keys, order, 0))
        order = gather(ctx, order, moved, 0)
    return order


def _first_of_runs(ctx: ImportContext, rows: Tensor) -> Tensor:
    """Which rows differ from the one before; the first does."""
    size, _ = rows.type.shape
    here = slice_axis(ctx, rows, 0, 1, size - 1)
    before = slice_axis(ctx, rows, 0, 0, size - 1)
    differ = cast(ctx, binary(ctx, BinaryFunction.NE, here, before), DType.UINT8)
    some = cast(ctx, reduce(ctx, ReduceFunction.MAX, differ, (1,), False), DType.BOOL)
    return ctx.emit(Concatenate(0), ctx.constant(np.ones(1, np.bool_)), some)


def convert_dropout(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The input; nothing is dropped but in training, which there is no code for."""
    (x,) = required(inputs[:1], 1)
    ratio, training = optional(inputs, 1), optional(inputs, 2)
    if training is not None and bool(ctx.value(training).reshape(-1)[0]):
        dropped = 0.5 if ratio is None else float(ctx.value(ratio).reshape(-1)[0])
        if dropped:
            raise ValueError("training with dropout; required a ratio of 0")
    dtype = DType.BOOL if ctx.opset >= 10 else x.type.dtype
    return x, broadcast(ctx, scalar(ctx, 1, dtype), x.type.shape)


def convert_binarizer(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """1 above the threshold, else 0."""
    (x,) = required(inputs, 1)
    above = less(ctx, scalar(ctx, node.real("threshold", 0), x), x)
    return (cast(ctx, above, x.type.dtype),)


def convert_array_feature_extractor(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Columns at the given indices."""
    x, places = required(inputs, 2)
    found = gather(ctx, x, reshape(ctx, places, (places.type.elements,)), -1)
    return (reshape(ctx, found, (1, found.type.elements)) if x.type.rank == 1 else found,)


def convert_tf_idf(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """How often each n-gram of the pool occurs in each row, with up to ``max_skip_count`` gaps."""
    (x,) = required(inputs, 1)
    rows = x if x.type.rank == 2 else reshape(ctx, x, (1, x.type.elements))
    pool, starts = node.integers("pool_int64s", ()), node.integers("ngram_counts", ())
    places = node.integers("ngram_indexes", ())
    width = max(places) + 1
    ctx.require_room(width)
    totals = broadcast(ctx, scalar(ctx, 0, DType.FLOAT32), (rows.type.shape[0], width))
    taken = 0
    for length, start in enumerate(starts, 1):
        end = starts[length] if length < len(starts) else len(pool)
        grams = np.asarray(pool[start:end], np.int64).reshape(-1, length)
        own = np.asarray(places[taken : taken + len(grams)], np.int64)
        taken += len(grams)
        within = node.integer("min_gram_length", 1) <= length <= node.integer("max_gram_length", 1)
        if not len(grams) or not within:
            continue
        most = min(node.integer("max_skip_count", 0), rows.type.shape[1])
        skips = range(most + 1) if length > 1 else range(1)
        for skip in skips:
            found = _occurrences(ctx, rows, grams, skip + 1)
            if found is not None:
                ctx.require_room(len(grams), width)
                spread = np.zeros((len(grams), width), np.float32)
                spread[np.arange(len(grams)), own] = 1
                terms = mul(ctx, reshape(ctx, found, (*found.type.shape, 1)), ctx.constant(spread))
                totals = add(ctx, totals, reduce(ctx, ReduceFunction.SUM, terms, (1,), False))
    result = _weighted(ctx, node, totals, places)
    return (result if x.type.rank == 2 else reshape(ctx, result, (width,)),)


def _occurrences(
    ctx: ImportContext,
    rows: Tensor,
    grams: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    step: int,
) -> Tensor | None:
    """float32[rows, grams]: at how many places a gram stands, its items ``step`` apart."""
    length, size = grams.shape[1], rows.type.shape[1]
    count = size - step * (length - 1)
    if count <= 0:
        return None
    match: Tensor | None = None
    for item in range(length):
        part = slice_axis(ctx, rows, 1, step * item, count)
        column = reshape(ctx, cast(ctx, part, DType.INT64), (rows.type.shape[0], 1, count))
        wanted = ctx.constant(grams[:, item].reshape(1, -1, 1))
        equal = binary(ctx, BinaryFunction.EQ, column, wanted)
        match = equal if match is None else binary(ctx, BinaryFunction.AND, match, equal)
    assert match is not None
    return reduce(ctx, ReduceFunction.SUM, cast(ctx, match, DType.FLOAT32), (2,), False)


def _weighted(
    ctx: ImportContext, node: OnnxNode, totals: Tensor, places: tuple[int, ...]
) -> Tensor:
    mode = node.text("mode", "TF")
    if mode == "TF":
        return totals
    weights = np.ones(totals.type.shape[1], np.float32)
    weights[list(places)] = node.reals("weights", (1.0,) * len(places))
    if mode == "IDF":
        some = less(ctx, scalar(ctx, 0, totals), totals)
        totals = cast(ctx, some, DType.FLOAT32)
    return mul(ctx, totals, ctx.constant(weights))


SELECTION: Mapping[str, Converter] = {
    "Dropout": convert_dropout,
    "NonMaxSuppression": convert_non_max_suppression,
    "ReverseSequence": convert_reverse_sequence,
    "TfIdfVectorizer": convert_tf_idf,
    "Unique": convert_unique,
    "ai.onnx.ml.ArrayFeatureExtractor": convert_array_feature_extractor,
    "ai.onnx.ml.Binarizer": convert_binarizer,
}
