"""Converters between real and quantised tensors."""

import numpy as np

from ...dtypes import DType
from ...graph.fixed_point import half_away, scaled
from ...graph.formulas import Term
from .node import BYTES, Converter, Node
from .quantized import limits_of, quantize_multiplier
from .schema import Quantization
from .tables import rescaled, tabled

__all__ = ["QUANTIZATION", "dequantised", "quantised"]


def dequantised(node: Node, x: Term, scale: Quantization) -> Term:
    """``scale * (x - zero_point)`` in float32."""
    rank = x.rank
    scales = np.asarray(scale.scales, np.float32)
    zeros = np.asarray(scale.zero_points, np.int32)
    if len(scales) > 1:
        axis = node.axis(scale.axis, rank)
        node.require(x.shape[axis] == len(scales), f"{len(scales)} indices of axis {axis}")
        shape = [len(scales) if place == axis else 1 for place in range(rank)]
        scales, zeros = scales.reshape(shape), zeros.reshape(shape)
    else:
        scales, zeros = scales.reshape(()), zeros.reshape(())
    wide = x.cast(DType.INT32)
    if zeros.any():
        wide = wide - zeros
    return wide.cast(DType.FLOAT32) * scales


def quantised(x: Term, scale: Quantization, dtype: DType) -> Term:
    """``round(x / scale) + zero_point`` of float32, half away from zero, limited to ``dtype``."""
    low, high = limits_of(dtype)
    quotient = half_away(x / np.float32(scale.scale).item())
    zero = scale.zero_point
    limited = quotient.maximum(float(low - zero)).minimum(float(high - zero))
    return (limited.cast(DType.INT32) + zero).cast(dtype)


def convert_quantize(node: Node) -> Term:
    """Floats to integers, or integers to those of another scale."""
    x, wanted = node.term(0), node.result_scale()
    dtype = node.result().dtype
    if x.dtype.is_float:
        return quantised(x, wanted, dtype)
    given = node.scale(0)
    if x.dtype in BYTES and dtype in BYTES:
        return tabled(node, x, lambda values: rescaled(values, given, wanted))
    wide = x.cast(DType.INT32) - given.zero_point
    result = scaled(wide, *quantize_multiplier(given.scale / wanted.scale)) + wanted.zero_point
    return result.clip(*limits_of(dtype)).cast(dtype)


def convert_dequantize(node: Node) -> Term:
    """Integers or narrow floats to float32."""
    x = node.term(0)
    if x.dtype.is_float:
        return x.cast(DType.FLOAT32)
    return dequantised(node, x, node.scale(0))


QUANTIZATION: dict[str, Converter] = {
    "DEQUANTIZE": convert_dequantize,
    "QUANTIZE": convert_quantize,
}
