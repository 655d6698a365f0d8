"""Converters of sums, means and extremes over axes."""

import numpy as np

from ...dtypes import DType
from ...graph.fixed_point import scaled
from ...graph.formulas import Term
from ...graph.operators.integer.products import Conv2d
from .node import Converter, Node
from .products import is_bytes, requantized
from .quantized import limits_of, quantize_multiplier, signed_zero

__all__ = ["REDUCTIONS"]


def axes_of(node: Node, rank: int) -> tuple[int, ...]:
    """The axes that are reduced, in order, each once."""
    return tuple(sorted({node.axis(axis, rank) for axis in node.integers(1)}))


def mean_factors(node: Node, count: int) -> tuple[int, int]:
    """Multiplier and shift of a mean of ``count`` elements."""
    multiplier, shift = quantize_multiplier(node.scale(0).scale / node.result_scale().scale)
    more = min(count.bit_length() - 1, 32, 31 + shift)
    return (multiplier << more) // count, shift - more


def convert_mean(node: Node) -> Term:
    """The mean over axes."""
    x = node.term(0)
    axes, keep = axes_of(node, x.rank), bool(node.attribute("keep_dims"))
    shape = tuple(
        1 if axis in axes else size for axis, size in enumerate(x.shape) if keep or axis not in axes
    )
    count = int(np.prod([x.shape[axis] for axis in axes]))
    node.require(count > 0, "an element")
    if not is_bytes(node):
        return (x.sum(*axes, keep=keep) / count) if axes else x
    if axes == (1, 2) and x.rank == 4 and x.shape[0] == 1:
        zero, channels = signed_zero(node.scale(0), x.dtype), x.shape[3]
        ones = node.constant(np.ones((channels, *x.shape[1:3], 1)), DType.INT8)
        none = node.constant(np.zeros(channels), DType.INT32)
        total = node.emit(Conv2d((1, 1), (0, 0, 0, 0), channels, zero), node.signed(x), ones, none)
        multiplier, shift = (
            np.full(channels, each, np.int32) for each in mean_factors(node, count)
        )
        return requantized(node, total, multiplier, shift).reshape(*shape)
    wide = x.cast(DType.INT32) - node.scale(0).zero_point
    total = wide.sum(*axes, keep=keep) if axes else wide
    mean = scaled(total, *mean_factors(node, count)) + node.result_scale().zero_point
    return mean.clip(*limits_of(x.dtype)).cast(x.dtype)


REDUCTIONS: dict[str, Converter] = {"MEAN": convert_mean}
