"""Converters of operators that select: boxes, distinct elements, parts of sequences."""

from collections.abc import Mapping

import numpy as np

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term, concatenate
from ...graph.operators.elementwise import BinaryFunction
from ...graph.operators.movement import Iota
from ...graph.operators.reductions import Cumulative, ReduceFunction
from ...graph.operators.selection import SuppressOverlaps
from ...graph.operators.sorting import Sort
from .context import Converter, ImportContext
from .indexing import positions
from .inputs import Inputs, normalise_axis, optional_term, scalar, terms
from .node import OnnxNode

__all__ = ["SELECTION"]

MOST_COLUMNS = 4096
"""Columns of slices that are sorted, at most: each takes a sort."""


def convert_non_max_suppression(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """As many rows as are chosen, by specialisation."""
    boxes, scores = terms(ctx, inputs[:2], 2)
    count = optional_term(ctx, inputs, 2)
    limit = 0 if count is None else int(ctx.value(count.tensor).reshape(-1)[0])
    nought = scalar(ctx, 0, DType.FLOAT32)
    overlap, least = (optional_term(ctx, inputs, place) or nought for place in (3, 4))
    if optional_term(ctx, inputs, 4) is None:
        least = scalar(ctx, -np.inf, DType.FLOAT32)
    if limit <= 0:
        return (ctx.constant(np.zeros((0, 3), np.int64)),)
    first, second = (boxes.slice(2, start, start + 2) for start in (0, 2))
    if node.integer("center_point_box", 0):
        half = second * 0.5
        first, second = first - half, first + half
    corners = first.minimum(second), first.maximum(second)
    ordered, order = ctx.emit_many(Sort(scores.shape[2], True), scores.tensor)
    rows, total = ctx.emit_many(
        SuppressOverlaps(min(limit, scores.shape[2])),
        concatenate(corners, 2).tensor,
        ordered,
        order,
        overlap.reshape().tensor,
        least.reshape().tensor,
    )
    return (Term(ctx, rows).slice(0, 0, int(ctx.value(total))).tensor,)


def convert_reverse_sequence(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The first elements of each row of the batch in reverse, as many as its length says."""
    x, lengths = terms(ctx, inputs, 2)
    batch, time = node.integer("batch_axis", 1), node.integer("time_axis", 0)
    sizes = (size if d == batch else 1 for d, size in enumerate(x.shape))
    length = lengths.cast(DType.INT64).reshape(*sizes)
    place = Term(ctx, ctx.emit(Iota(x.shape, time)))
    mirrored = length - 1 - place
    source = (place < length).where(mirrored, place, DType.INT64)
    return (x.take_elements(source, time).tensor,)


def convert_unique(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Distinct elements, or slices along an axis: sorted, then those that differ from the last."""
    (x,) = terms(ctx, inputs[:1], 1)
    if "axis" in node.attributes:
        axis = normalise_axis(node.integer("axis", 0), x.rank)
    else:
        x, axis = x.reshape(-1), 0
    size = x.shape[axis]
    rows = x.move_axis(axis, 0).reshape(size, x.tensor.type.elements // max(size, 1))
    ranked = _sorted_rows(ctx, rows)
    starts = _first_of_runs(rows.take(ranked, 0))
    begins = positions(starts)
    first = ranked.take(begins, 0)
    (count,) = begins.shape
    running = ctx.emit(Cumulative(ReduceFunction.SUM, 0), starts.cast(DType.INT64).tensor)
    line = Term(ctx, running) - 1
    inverse = _blank(ctx, size).scatter(0, ranked, line)
    whole = Term(ctx, ctx.constant(np.full(1, size, np.int64)))
    counts = concatenate([begins.slice(0, 1, count), whole], 0) - begins if count > 1 else whole
    if not node.integer("sorted", 1):
        _, order = ctx.emit_many(Sort(count), first.tensor)
        appearance = Term(ctx, order)
        first, counts = (each.take(appearance, 0) for each in (first, counts))
        blank, numbers = _blank(ctx, count), Term(ctx, ctx.emit(Iota((count,), 0)))
        inverse = blank.scatter(0, appearance, numbers).take(inverse, 0)
    return x.take(first, axis).tensor, first.tensor, inverse.tensor, counts.tensor


def _blank(ctx: ImportContext, size: int) -> Term:
    return Term(ctx, ctx.constant(np.zeros(size, np.int64)))


def _sorted_rows(ctx: ImportContext, rows: Term) -> Term:
    """The order of rows: stable sorts by each column, the last column first."""
    size, width = rows.shape
    if width > MOST_COLUMNS:
        raise UnsupportedOperatorError(
            f"node {ctx.origin!r}: distinct slices of {width} elements; required at most "
            f"{MOST_COLUMNS}"
        )
    order = Term(ctx, ctx.emit(Iota((size,), 0)))
    for column in reversed(range(width)):
        keys = rows.slice(1, column, column + 1).reshape(size)
        _, moved = ctx.emit_many(Sort(size), keys.take(order, 0).tensor)
        order = order.take(Term(ctx, moved), 0)
    return order


def _first_of_runs(rows: Term) -> Term:
    """True for rows that differ from the row before, and for the first."""
    size, _ = rows.shape
    here, before = rows.slice(0, 1, size), rows.slice(0, 0, size - 1)
    differ = here.binary(BinaryFunction.NE, before).cast(DType.UINT8)
    first, some = rows.constant(np.ones(1, np.bool_), DType.BOOL), differ.max(1).cast(DType.BOOL)
    return concatenate([first, some], 0)


def convert_dropout(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """The input; nothing is dropped but in training, which there is no code for."""
    (x,) = terms(ctx, inputs[:1], 1)
    ratio, training = optional_term(ctx, inputs, 1), optional_term(ctx, inputs, 2)
    if training is not None and bool(ctx.value(training.tensor).reshape(-1)[0]):
        dropped = 0.5 if ratio is None else float(ctx.value(ratio.tensor).reshape(-1)[0])
        if dropped:
            raise ValueError("training with dropout; required a ratio of 0")
    dtype = DType.BOOL if ctx.opset >= 10 else x.dtype
    return x.tensor, scalar(ctx, 1, dtype).expand(*x.shape).tensor


def convert_binarizer(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """1 above the threshold, else 0."""
    (x,) = terms(ctx, inputs, 1)
    return ((x > node.real("threshold", 0)).cast(x.dtype).tensor,)


def convert_array_feature_extractor(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Columns at the given indices."""
    x, places = terms(ctx, inputs, 2)
    found = x.take(places.reshape(-1), normalise_axis(-1, x.rank))
    return ((found.reshape(1, -1) if x.rank == 1 else found).tensor,)


def convert_tf_idf(ctx: ImportContext, node: OnnxNode, inputs: Inputs) -> Inputs:
    """Counts of each n-gram of the pool in each row, with up to ``max_skip_count`` gaps."""
    (x,) = terms(ctx, inputs, 1)
    rows = x if x.rank == 2 else x.reshape(1, -1)
    pool, starts = node.integers("pool_int64s", ()), node.integers("ngram_counts", ())
    places = node.integers("ngram_indexes", ())
    width = max(places) + 1
    ctx.require_room(width)
    totals = scalar(ctx, 0, DType.FLOAT32).expand(rows.shape[0], width)
    taken = 0
    for length, start in enumerate(starts, 1):
        end = starts[length] if length < len(starts) else len(pool)
        grams = np.asarray(pool[start:end], np.int64).reshape(-1, length)
        own = np.asarray(places[taken : taken + len(grams)], np.int64)
        taken += len(grams)
        within = node.integer("min_gram_length", 1) <= length <= node.integer("max_gram_length", 1)
        if not len(grams) or not within:
            continue
        most = min(node.integer("max_skip_count", 0), rows.shape[1])
        skips = range(most + 1) if length > 1 else range(1)
        for skip in skips:
            found = _occurrences(rows, grams, skip + 1)
            if found is not None:
                ctx.require_room(len(grams), width)
                spread = np.zeros((len(grams), width), np.float32)
                spread[np.arange(len(grams)), own] = 1
                totals = totals + (found.unsqueeze(found.rank) * spread).sum(1)
    result = _weighted(node, totals, places)
    return ((result if x.rank == 2 else result.reshape(width)).tensor,)


def _occurrences(
    rows: Term, grams: np.ndarray[tuple[int, ...], np.dtype[np.int64]], step: int
) -> Term | None:
    """float32[rows, grams]: at how many places a gram stands, its items ``step`` apart."""
    length, size = grams.shape[1], rows.shape[1]
    count = size - step * (length - 1)
    if count <= 0:
        return None
    match: Term | None = None
    for item in range(length):
        part = rows.slice(1, step * item, step * item + count)
        column = part.cast(DType.INT64).reshape(rows.shape[0], 1, count)
        equal = column.equal(grams[:, item].reshape(1, -1, 1))
        match = equal if match is None else match & equal
    assert match is not None
    return match.cast(DType.FLOAT32).sum(2)


def _weighted(node: OnnxNode, totals: Term, places: tuple[int, ...]) -> Term:
    mode = node.text("mode", "TF")
    if mode == "TF":
        return totals
    weights = np.ones(totals.shape[1], np.float32)
    weights[list(places)] = node.reals("weights", (1.0,) * len(places))
    if mode == "IDF":
        totals = (totals > 0).cast(DType.FLOAT32)
    return totals * weights


SELECTION: Mapping[str, Converter] = {
    "Dropout": convert_dropout,
    "NonMaxSuppression": convert_non_max_suppression,
    "ReverseSequence": convert_reverse_sequence,
    "TfIdfVectorizer": convert_tf_idf,
    "Unique": convert_unique,
    "ai.onnx.ml.ArrayFeatureExtractor": convert_array_feature_extractor,
    "ai.onnx.ml.Binarizer": convert_binarizer,
}
