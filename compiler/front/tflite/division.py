"""Division, of quantised tensors in fixed point."""

import numpy as np

from ...dtypes import DType
from ...graph.formulas import Term
from .arithmetic import high_product, leading_zeros, reciprocal, scaled_by
from .node import BYTES, Node
from .quantized import activated, activation_limits, quantize_multiplier

__all__ = ["convert_division"]


def convert_division(node: Node) -> Term:
    """``a / b``; integers that are not quantised are rounded towards zero."""
    a, b = node.term(0), node.term(1)
    if node.info(0).quantization is None or a.dtype.is_float or a.dtype == DType.INT32:
        return activated(node, a / b)
    if a.dtype not in (*BYTES, DType.INT16):
        raise node.unsupported(f"elements of {a.dtype}")
    return _of_integers(node, a, b)


def _of_integers(node: Node, a: Term, b: Term) -> Term:
    """The first, shifted left as far as it goes, times the second's inverse.

    Source: TensorFlow Lite, ``reference/div.h``.
    """
    x, y = (
        each.cast(DType.INT64) - node.scale(place).zero_point for place, each in enumerate((a, b))
    )
    sign = (y < 0).cast(DType.INT64) * -2 + 1
    x, y = x * sign, y * sign
    ones = y * 0 + 1
    zeros = leading_zeros(y, ones)
    inverse = reciprocal((y << zeros) - (1 << 31))
    negative = (x < 0).cast(DType.INT64)
    size = (x.abs() << negative) - negative
    room = leading_zeros(size, x * 0 + 1) - 1 + negative
    quotient = high_product(x << room, inverse)
    result = node.result_scale()
    first, second, last = (
        np.float32(each.scale) for each in (node.scale(0), node.scale(1), result)
    )
    multiplier, shift = quantize_multiplier(float(first / (second * last)))
    moved = scaled_by(quotient, ones * multiplier, zeros - room + (shift - 31))
    return (
        (moved.cast(DType.INT32) + result.zero_point).clip(*activation_limits(node)).cast(a.dtype)
    )
