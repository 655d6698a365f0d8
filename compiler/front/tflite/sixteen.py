"""Sums of products of 16-bit activations with weights of bytes."""

import numpy as np

from ...dtypes import DType
from ...graph.fixed_point import half_away, scaled
from ...graph.formulas import Term
from ...graph.ir import Array
from .node import Node
from .quantized import activation_limits, quantize_multiplier

__all__ = ["is_sixteen", "requantized_wide", "scaled_wide"]


def is_sixteen(node: Node) -> bool:
    """True if activations are int16, quantised, and weights int8."""
    return node.term(0).dtype == DType.INT16 and node.term(1).dtype == DType.INT8


def scaled_wide(x: Term, multiplier: Array | int, shift: Array | int) -> Term:
    """``x * multiplier * 2**(shift - 31)`` of int64, with 16 bits of the multiplier, rounded up;
    int32, which wraps.
    """
    factor = np.asarray(multiplier, np.int64)
    short = np.where(factor < 0x7FFF0000, (factor + (1 << 15)) >> 16, 0x7FFF)
    amount = 15 - np.asarray(shift, np.int64)
    return ((x * short + (np.int64(1) << (amount - 1))) >> amount).cast(DType.INT32)


def requantized_wide(node: Node, total: Term, bias: int, once: bool = False) -> Term:
    """int64 sums of the last dimension's channels as int16, with the bias at input ``bias``.

    A bias of int64 has multipliers of 16 bits, one of int32 those of 32 bits, rounded twice.
    once: the product is one of float64, as of dense layers.
    Source: TensorFlow Lite, ``MultiplyByQuantizedMultiplier``.
    """
    outputs, x, weights = total.shape[-1], node.scale(0), node.scale(1)
    node.require(len(weights.scales) in (1, outputs), f"one scale of weights, or {outputs}")
    result = node.result_scale()
    scales = np.broadcast_to(np.asarray(weights.scales), (outputs,)) * x.scale / result.scale
    low, high = activation_limits(node)
    given = node.optional(bias)
    if given is not None:
        total = total + given.cast(DType.INT64)
    if once:
        product = total.cast(DType.FLOAT64) * scales
        zero = result.zero_point
        limited = half_away(product.clip(float(low - zero), float(high - zero)))
        return (limited.cast(DType.INT32) + zero).cast(DType.INT16)
    factors = np.asarray([quantize_multiplier(scale) for scale in scales], np.int64)
    multiplier, shift = factors.reshape(outputs, 2).T
    if given is not None and given.dtype == DType.INT32:
        moved = scaled(total.cast(DType.INT32), multiplier, shift)
    else:
        moved = scaled_wide(total, multiplier, shift)
    return (moved + result.zero_point).clip(low, high).cast(DType.INT16)
