"""Converters of softmax and its logarithm along the last dimension."""

from math import floor

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term
from ...graph.ir import Array
from ...graph.operators.integer.fixed_point import scaled
from .arithmetic import exponential, high_product, leading_zeros, reciprocal, rounded_shift
from .node import BYTES, Converter, Node
from .quantized import limits_of, quantize_multiplier

__all__ = ["SOFTMAX"]

INTEGER_BITS = 5
SUM_BITS = 12
LARGEST_FACTOR = float((1 << 31) - 1)


def convert_softmax(node: Node) -> Term:
    """``exp(beta * x) / sum(exp(beta * x))``; bytes in fixed point."""
    x, beta = node.term(0), float(node.attribute("beta", 1.0))
    node.require(x.rank >= 1, "a dimension")
    if x.dtype.is_float:
        return (x if beta == 1 else x * beta).softmax(-1)
    if x.dtype not in BYTES:
        raise node.unsupported(f"elements of {x.dtype}")
    return _of_bytes(node, x, beta)


def _exponentials(scale: float, beta: float) -> Array:
    """``exp(-beta * scale * d)`` for d from 0 to 255, without integer bits; 0 for the least."""
    real = min(beta * scale * (1 << (31 - INTEGER_BITS)), LARGEST_FACTOR)
    multiplier, shift = quantize_multiplier(real)
    radius = floor(((1 << INTEGER_BITS) - 1) * (1 << (31 - INTEGER_BITS)) / 2.0**shift)
    differences = -np.arange(256, dtype=np.int64)
    inside = differences >= -radius
    found = exponential(scaled(np.where(inside, differences, 0), multiplier, shift), INTEGER_BITS)
    return np.where(inside, found, 0)


def _of_bytes(node: Node, x: Term, beta: float) -> Term:
    """Exponentials by a table of what an element is below its row's largest.

    Source: TensorFlow Lite, ``reference/softmax.h``.
    """
    dtype = node.result().dtype
    table = _exponentials(node.scale(0).scale, beta)
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


SOFTMAX: dict[str, Converter] = {"SOFTMAX": convert_softmax}
