"""Converters of reductions over axes, and of normalisations by them."""

from math import prod

import numpy as np

from ...dtypes import DType
from ...graph.fixed_point import scaled
from ...graph.formulas import Term
from ...graph.operators.integer.products import Conv2d
from ...graph.operators.reductions import ArgReduce, Cumulative, ReduceFunction
from ...graph.operators.windows import WindowFunction, WindowReduce
from .arithmetic import inverse_root, scaled_by
from .node import Converter, Node
from .products import is_bytes, requantized
from .quantized import limits_of, quantize_multiplier, signed_zero
from .sixteen import scaled_wide

__all__ = ["REDUCTIONS"]

MOST_FACTORS = 1024
"""Elements of a product that is quantised: each is a node or more."""


def _axes(node: Node, rank: int) -> tuple[int, ...]:
    """The axes that are reduced, in order, each once."""
    return tuple(sorted({node.axis(axis, rank) for axis in node.integers(1)}))


def _mean_factors(node: Node, count: int) -> tuple[int, int]:
    """Multiplier and shift of a mean of ``count`` elements."""
    multiplier, shift = quantize_multiplier(node.scale(0).scale / node.result_scale().scale)
    more = min(count.bit_length() - 1, 32, 31 + shift)
    return (multiplier << more) // count, shift - more


def convert_mean(node: Node) -> Term:
    """The mean over axes."""
    x = node.term(0)
    axes, keep = _axes(node, x.rank), bool(node.attribute("keep_dims"))
    count = prod(x.shape[axis] for axis in axes)
    node.require(count > 0, "an element")
    if not node.is_quantised:
        if not axes:
            return x
        if x.dtype == DType.INT32:
            return (x.cast(DType.INT64).sum(*axes, keep=keep) / count).cast(x.dtype)
        return x.sum(*axes, keep=keep) / count
    if is_bytes(node) and axes == (1, 2) and x.rank == 4 and x.shape[0] == 1:
        return _mean_of_image(node, x, keep)
    return _scaled_sum(node, x, axes, keep, _mean_factors(node, count))


def _scaled_sum(
    node: Node, x: Term, axes: tuple[int, ...], keep: bool, factors: tuple[int, int]
) -> Term:
    wide = x.cast(DType.INT32) - node.scale(0).zero_point
    total = wide.sum(*axes, keep=keep) if axes else wide
    moved = scaled(total, *factors) + node.result_scale().zero_point
    return moved.clip(*limits_of(x.dtype)).cast(x.dtype)


def _mean_of_image(node: Node, x: Term, keep: bool) -> Term:
    """Sums of rows and columns as a layer of one window."""
    zero, channels = signed_zero(node.scale(0), x.dtype), x.shape[3]
    node.context.require_room(*x.shape)
    ones = node.constant(np.ones((channels, *x.shape[1:3], 1)), DType.INT8)
    none = node.constant(np.zeros(channels), DType.INT32)
    layer = Conv2d((1, 1), (0, 0, 0, 0), channels, zero)
    total = node.emit(layer, node.signed(x), ones, none)
    factors = _mean_factors(node, x.shape[1] * x.shape[2])
    multiplier, shift = (np.full(channels, each, np.int32) for each in factors)
    result = requantized(node, total, multiplier, shift)
    return result if keep else result.reshape(1, channels)


def convert_sum(node: Node) -> Term:
    """The sum over axes."""
    x = node.term(0)
    axes, keep = _axes(node, x.rank), bool(node.attribute("keep_dims"))
    if node.is_quantised:
        factors = quantize_multiplier(node.scale(0).scale / node.result_scale().scale)
        return _scaled_sum(node, x, axes, keep, factors)
    return x.sum(*axes, keep=keep) if axes else x


def _reduction(function: ReduceFunction) -> Converter:
    """Products, extremes, and logical reductions."""

    def convert(node: Node) -> Term:
        x = node.term(0)
        axes = _axes(node, x.rank)
        if function is ReduceFunction.PRODUCT and node.is_quantised:
            return _product_of_integers(node, x, axes)
        if not axes:
            return x
        if x.dtype == DType.BOOL:
            whole = x.cast(DType.UINT8).reduce(function, axes, bool(node.attribute("keep_dims")))
            return whole.cast(DType.BOOL)
        return x.reduce(function, axes, bool(node.attribute("keep_dims")))

    return convert


def _product_of_integers(node: Node, x: Term, axes: tuple[int, ...]) -> Term:
    """Each product is scaled before the next, so that no one is too large."""
    rest = tuple(axis for axis in range(x.rank) if axis not in axes)
    count = prod(x.shape[axis] for axis in axes)
    if not 1 <= count <= MOST_FACTORS:
        raise node.unsupported(f"a product of {count} quantised elements")
    result = node.result_scale()
    root = result.scale ** (1.0 / count)
    multiplier, shift = quantize_multiplier(node.scale(0).scale / root)
    wide = x.cast(DType.INT64) - node.scale(0).zero_point
    kept = [x.shape[axis] for axis in rest]
    rows = wide.transpose(*rest, *axes).reshape(*kept, count)
    total = rows.slice(-1 % rows.rank, 0, 1)
    for place in range(1, count):
        each = rows.slice(rows.rank - 1, place, place + 1)
        total = scaled_wide(total * each, multiplier, shift).cast(DType.INT64)
    last = scaled_wide(total, multiplier, shift) + result.zero_point
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    shape = shape if node.attribute("keep_dims") else kept
    return last.clip(*limits_of(x.dtype)).cast(x.dtype).reshape(*shape)


def _arg_reduction(function: ReduceFunction) -> Converter:
    """Where the first extreme is."""

    def convert(node: Node) -> Term:
        x = node.term(0)
        axis = node.axis(node.integers(1)[0], x.rank)
        return node.emit(ArgReduce(function, axis), x).cast(node.result().dtype)

    return convert


def convert_cumsum(node: Node) -> Term:
    """Running sums."""
    x = node.term(0)
    axis = node.axis(node.integers(1)[0], x.rank)
    exclusive, reverse = bool(node.attribute("exclusive")), bool(node.attribute("reverse"))
    return node.emit(Cumulative(ReduceFunction.SUM, axis, exclusive, reverse), x)


def convert_l2_normalization(node: Node) -> Term:
    """Rows of length 1; of bytes with a scale of 1/128."""
    x = node.term(0)
    if x.dtype.is_float:
        return x / (x * x).sum(-1, keep=True).maximum(1e-12).sqrt()
    if not is_bytes(node):
        raise node.unsupported(f"elements of {x.dtype}")
    wide = x.cast(DType.INT64) - node.scale(0).zero_point
    squares = (wide * wide).sum(-1, keep=True)
    multiplier, shift = inverse_root(squares, squares * 0 + 1)
    if x.dtype == DType.INT8:
        result = scaled_by(wide, multiplier, shift + 7)
    else:
        result = scaled_by(wide * 128, multiplier, shift) + 128
    return result.clip(*limits_of(x.dtype)).cast(x.dtype)


def convert_local_response(node: Node) -> Term:
    """``x * (bias + alpha * sum(x ** 2)) ** -beta`` over channels, ``radius`` before and one
    less after.
    """
    x, radius = node.term(0), node.attribute("radius", 5)
    node.require(x.rank == 4 and radius >= 0, "4 dimensions and a radius")
    before, after = min(radius, x.shape[3] - 1), min(radius - 1, x.shape[3] - 1)
    total = x * 0.0
    if radius > 0:
        around = ((before, after),)
        window = WindowReduce((3,), (before + 1 + after,), (1,), (1,), around, WindowFunction.ADD)
        total = node.emit(window, x * x)
    alpha, bias = float(node.attribute("alpha", 1.0)), float(node.attribute("bias", 1.0))
    return x * (total * alpha + bias).power(-float(node.attribute("beta", 0.5)))


REDUCTIONS: dict[str, Converter] = {
    "ARG_MAX": _arg_reduction(ReduceFunction.MAX),
    "ARG_MIN": _arg_reduction(ReduceFunction.MIN),
    "CUMSUM": convert_cumsum,
    "L2_NORMALIZATION": convert_l2_normalization,
    "LOCAL_RESPONSE_NORMALIZATION": convert_local_response,
    "MEAN": convert_mean,
    "REDUCE_ALL": _reduction(ReduceFunction.MIN),
    "REDUCE_ANY": _reduction(ReduceFunction.MAX),
    "REDUCE_MAX": _reduction(ReduceFunction.MAX),
    "REDUCE_MIN": _reduction(ReduceFunction.MIN),
    "REDUCE_PROD": _reduction(ReduceFunction.PRODUCT),
    "SUM": convert_sum,
}
