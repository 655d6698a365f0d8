"""Numbers in PAR on symbols, of rows or given for each run, and the layers made with them."""

from operator import itemgetter

import numpy as np

from ..graph.operators.integer.norm import WIDE_SHIFT, RowNorm
from ..graph.operators.integer.residual import RequantizeAdd
from ..graph.operators.integer.scaled_sum import FRACTION_BITS, ScaledSum
from ..graph.operators.integer.softmax import RowSoftmax, exponential_table
from ..graph.operators.integer.tensor_norm import NormSteps, TensorNorm
from .symbol_sums import largest, requantized
from .symbols import Array, Parameters, Symbols, apply_table, balanced, digest, function, integers

__all__ = [
    "NONE",
    "over_root",
    "over_sum",
    "requantized_with",
    "row_norm",
    "row_softmax",
    "scaled_sum",
    "tensor_norm",
    "widened",
]

NONE = np.zeros(1, np.int32)
"""No bias."""


def over_sum(scale: Array, total: Array) -> Array:
    """The scale that ``Row.OVER`` makes of a sum, as a word.  scale: float32, total: elements."""
    return _named("over", scale, total)


def over_root(scale: Array, total: Array, shift: int) -> Array:
    """As ``over_sum``, of ``Row.ROOT``."""
    return _named(f"root {shift}", scale, total)


def _named(name: str, scale: Array, total: Array) -> Array:
    bits = np.ascontiguousarray(scale).view(np.int32)
    return function(digest(name), bits, total).astype(np.int32).view(np.float32)


def widened(values: Array, bias: Array, scale: Array, zero_point: int = 0) -> Symbols:
    """Results of REQUANTIZE from integers with the rounding WIDE; bias, scale: words of PAR.

    A scale of 0 makes 0.
    """
    bits = np.ascontiguousarray(scale).view(np.int32)
    found = function(digest("wide", zero_point), balanced(values + bias), bits)
    return integers(np.where(bits == 0, zero_point, found))


def requantized_with(step: RequantizeAdd, x: Symbols, scale: Array, r: Symbols) -> Symbols:
    """Sums of 20 bits and a multiple of bytes; and the finish of their sum."""
    terms = widened(x.values, NONE, scale).values + step.factor * r.values
    moved = Parameters(
        np.array([-step.factor * step.r_zero_point], np.int32), np.array([step.step], np.float32)
    )
    return requantized(integers(terms), moved, step.zero_point, step.low, step.high)


def scaled_sum(step: ScaledSum, x: Symbols, factors: Array) -> Symbols:
    """Terms of each channel, each by its factor, a word; and the finish of their sum."""
    shape = *x.values.shape[:-1], step.terms, step.repeats, x.values.shape[-1] // step.terms
    values = x.values.reshape(*shape[:-2], 1, shape[-1])
    terms = widened(values, NONE, factors.reshape(shape)).values
    total = integers(terms.sum(axis=-3).reshape(*x.values.shape[:-1], -1))
    scale = np.array([2.0**-FRACTION_BITS], np.float32)
    return requantized(total, Parameters(NONE, scale), step.zero_point, -128, 127)


def row_softmax(step: RowSoftmax, x: Symbols) -> Symbols:
    """Exponentials of what the largest exceeds, each of two bytes, over their sum."""
    channels = range(x.values.shape[-1])
    most = largest(x.moved(itemgetter((..., slice(n, n + 1)))) for n in channels)
    one = np.ones(most.values.shape, np.float32)
    less = Parameters(balanced(-most.values).astype(np.int32), one, made=True)
    differences = requantized(x, less, 127, -128, 127)
    table = exponential_table(step.x_scale)
    upper = (table + 128) >> 8
    high, low = (apply_table(differences, half).values for half in (upper, table - 256 * upper))
    e = balanced(256 * high + low)
    total = balanced(e.sum(axis=-1, keepdims=True))
    over = over_sum(np.full(total.shape, step.steps, np.float32), total)
    return requantized(integers(e), Parameters(NONE, over, made=True), step.zero_point, -128, 127)


def row_norm(
    step: RowNorm, x: Symbols, bias: Array, scale: Array, table: Array | None = None
) -> Symbols:
    """Deviations, a scale over the root of their squares, and the finish of each channel."""
    channels = x.values.shape[-1]
    values, moved = x.values, np.array(-(step.about or 0))
    if step.about is None:
        moved = balanced(-values.sum(axis=-1, keepdims=True))
        values = balanced(channels * values)
    factor = np.full((*values.shape[:-1], 1), step.factor(channels), np.float32)
    deviations = widened(values, moved, factor).values
    squares = balanced(deviations * deviations).sum(axis=-1, keepdims=True)
    if table is not None:
        share = np.full(squares.shape, step.share, np.float32)
        word = Parameters(balanced(-squares).astype(np.int32), share, made=True)
        byte = requantized(integers(np.zeros_like(squares)), word, 127, -128, 127)
        squares = apply_table(byte, table).values
    total = balanced(squares + step.epsilon)
    over = over_root(factor, total, step.shift)
    normalised = widened(values, moved, over)
    return requantized(normalised, Parameters(bias, scale), step.zero_point, -128, 127)


def tensor_norm(step: TensorNorm, x: Symbols) -> Symbols:
    """Sums of an image and of its squares, in parts, and a scale over the root of the variance."""
    steps = NormSteps(x.values[0].size)
    rows = x.values.reshape(len(x.values), -1)
    less = balanced(-rows.sum(axis=1, keepdims=True))
    squares = balanced(-balanced(rows * rows).sum(axis=1, keepdims=True))
    of_sums, of_mean, of_parts, one = (
        np.full(1, each, np.float32)
        for each in (steps.sum_scale, -steps.mean_scale, 1 / steps.part, 1)
    )
    a = widened(np.zeros_like(squares), squares, of_parts).values
    rest = widened(balanced(a * -steps.part), squares, one).values
    scaled = widened(np.zeros_like(less), less, of_sums).values
    m = widened(scaled, NONE, of_mean).values
    w = widened(balanced(m * (steps.mean // 2)), less, of_sums).values
    per_part, per_rest = (
        widened(np.zeros(1, np.int64), np.full(1, -number, np.int32), one).values
        for number in (steps.factor * steps.part, steps.factor)
    )
    terms = (balanced(pair[0] * pair[1]) for pair in ((per_part, a), (per_rest, rest), (w, m)))
    total = balanced(np.sum(list(terms), axis=0) + step.epsilon)
    over = over_root(np.full(total.shape, step.scale, np.float32), total, WIDE_SHIFT)
    word = Parameters(less.astype(np.int32), over, made=True)
    values = integers(balanced(rows * steps.elements))
    found = requantized(values, word, step.zero_point, -128, 127)
    return found.moved(lambda each: each.reshape(x.values.shape))
