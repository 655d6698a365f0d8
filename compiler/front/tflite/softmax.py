"""Converters of softmax and its logarithm along the last dimension."""

from math import floor

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term
from ...graph.ir import Array
from ...graph.operators.integer.fixed_point import scaled
from .arithmetic import (
    exponential,
    high_product,
    leading_zeros,
    natural_log,
    reciprocal,
    rounded_shift,
)
from .node import BYTES, Converter, Node
from .quantized import limits_of, quantize_multiplier
from .tables import interpolated, sampled

__all__ = ["SOFTMAX"]

INTEGER_BITS = 5
SUM_BITS = 12
LARGEST_FACTOR = float((1 << 31) - 1)
LEAST = -(1 << 40)
"""Less than every difference of 5 integer bits."""
OUTPUT_BITS = 22
"""Bits below 1/16, the scale of logarithms, in a difference of 5 integer bits."""


def convert_softmax(node: Node) -> Term:
    """``exp(beta * x) / sum(exp(beta * x))``; bytes in fixed point."""
    x, beta = node.term(0), float(node.attribute("beta", 1.0))
    node.require(x.rank >= 1, "a dimension")
    if x.dtype.is_float:
        return (x if beta == 1 else x * beta).softmax(-1)
    if x.dtype == DType.INT16:
        return _of_int16(node, x, beta)
    if x.dtype not in BYTES:
        raise node.unsupported(f"elements of {x.dtype}")
    return _of_bytes(node, x, beta)


def _differences(scale: float, beta: float) -> tuple[Array, Array]:
    """``-beta * scale * d`` for d from 0 to 255, with 5 integer bits, and its exponential, without;
    0 for the least.
    """
    real = min(beta * scale * (1 << (31 - INTEGER_BITS)), LARGEST_FACTOR)
    multiplier, shift = quantize_multiplier(real)
    radius = floor(((1 << INTEGER_BITS) - 1) * (1 << (31 - INTEGER_BITS)) / 2.0**shift)
    differences = -np.arange(256, dtype=np.int64)
    inside = differences >= -radius
    moved = scaled(np.where(inside, differences, 0), multiplier, shift)
    return np.where(inside, moved, LEAST), np.where(inside, exponential(moved, INTEGER_BITS), 0)


def _of_bytes(node: Node, x: Term, beta: float) -> Term:
    """Exponentials by a table of what an element is below its row's largest.

    Source: TensorFlow Lite, ``reference/softmax.h``.
    """
    dtype = node.result().dtype
    table = _differences(node.scale(0).scale, beta)[1]
    low, high = limits_of(dtype)
    wide = x.cast(DType.INT64)
    below = wide.max(-1, keep=True) - wide
    each = node.constant(table, DType.INT64).take(below, 0)
    parts = node.constant(rounded_shift(table, SUM_BITS), DType.INT64).take(below, 0)
    total = parts.sum(-1, keep=True)
    zeros = leading_zeros(total, total * 0 + 1)
    inverse = reciprocal((total << zeros) - (1 << 31))
    amount = -zeros + (SUM_BITS + 31 - dtype.bytes * 8)
    half = (amount * 0 + 1) << (amount - 1)
    shares = (high_product(each, inverse) + half) >> amount
    return (shares + low).clip(low, high).cast(dtype)


def _of_int16(node: Node, x: Term, beta: float) -> Term:
    """Exponentials and inverses by samples.  Source: TensorFlow Lite, ``SoftmaxInt16``."""
    factors = quantize_multiplier(node.scale(0).scale * beta / (10 / 65535))
    places = scaled(-np.arange(65536, dtype=np.int64), *factors) + 32767
    values = np.arange(-32768, 32768, dtype=np.int64)
    exponentials = sampled(np.exp, (10 / 65535, 32767), (2 / 65535, 0))
    inverses = sampled(lambda x: 1 / (1 + x), (1 / 65535, -32768), (2 / 65535, 0))
    table = interpolated(places.clip(-32768, 32767), exponentials)
    wide = x.cast(DType.INT64)
    each = node.constant(table, DType.INT64).take(wide.max(-1, keep=True) - wide, 0)
    total = each.sum(-1, keep=True)
    zeros = leading_zeros(total, total * 0 + 1)
    near = (((total << (zeros - 1)) + (1 << 13)) >> 14) - (1 << 16)
    inverse = node.constant(interpolated(values, inverses), DType.INT64).take(
        near.clip(0, 65535), 0
    )
    amount = zeros * -1 + 31
    half = (amount * 0 + 1) << (amount - 1)
    shares = ((each * inverse + half) >> amount).cast(DType.INT32)
    return shares.clip(0, 32767).cast(DType.INT16)


def convert_log_softmax(node: Node) -> Term:
    """The logarithm of softmax along the last dimension; of bytes in fixed point.

    Source: TensorFlow Lite, ``integer_ops/log_softmax.h``.
    """
    x = node.term(0)
    if x.dtype.is_float:
        below = x - x.max(-1, keep=True)
        return below - below.exp().sum(-1, keep=True).log()
    if x.dtype not in BYTES:
        raise node.unsupported(f"elements of {x.dtype}")
    moved, table = _differences(node.scale(0).scale, 1.0)
    low, high = limits_of(x.dtype)
    wide = x.cast(DType.INT64)
    below = wide.max(-1, keep=True) - wide
    parts = node.constant(rounded_shift(table, SUM_BITS), DType.INT64).take(below, 0)
    log = natural_log(parts.sum(-1, keep=True), SUM_BITS)
    found = node.constant(moved, DType.INT64).take(below, 0) - log
    return (rounded_shift(found, OUTPUT_BITS) + high).clip(low, high).cast(x.dtype)


SOFTMAX: dict[str, Converter] = {"LOG_SOFTMAX": convert_log_softmax, "SOFTMAX": convert_softmax}
