"""Quantisation as PT2E writes it.  Source: PyTorch, torch/ao/quantization/fx/_decomposed.py.

Passes tell integer layers by these operators.  torch multiplies by ``1 / scale`` where the graph
divides, so that a number half way between two steps may become the other one.
"""

from typing import Any

import numpy as np

from ...dtypes import DType
from ...errors import UnsupportedOperatorError
from ...graph.formulas import Term
from ...graph.operators.quantization import STORED, DequantizeLinear, QuantizeLinear
from .context import Context, Converter, Number
from .promotion import as_term

__all__ = ["QUANTIZED"]


def quantize(
    context: Context,
    x: Term,
    scale: Term | Number = 1.0,
    zero_point: Term | Number = 0,
    quant_min: Term | Number = 0,
    quant_max: Term | Number = 0,
    dtype: DType = DType.INT8,
    axis: int = 0,
) -> Term:
    """``clamp(rint(x / scale) + zero_point, quant_min, quant_max)``."""
    if dtype not in STORED:
        raise UnsupportedOperatorError(
            f"{context.where}: quantises to {dtype}; required 8 or 16 bits"
        )
    steps = as_term(context, scale, DType.FLOAT32)
    zero = as_term(context, zero_point, dtype)
    found = context.emitted(QuantizeLinear(axis), x.cast(DType.FLOAT32), _line(steps), _line(zero))
    low, high = (_number(context, each) for each in (quant_min, quant_max))
    limits = np.iinfo(str(dtype))
    return found if low <= limits.min and high >= limits.max else found.clip(low, high)


def dequantize(
    context: Context,
    x: Term,
    scale: Term | Number = 1.0,
    zero_point: Term | Number | None = 0,
    quant_min: Term | Number = 0,
    quant_max: Term | Number = 0,
    dtype: DType = DType.INT8,
    axis: int = 0,
    out_dtype: DType | None = None,
) -> Term:
    """``(x - zero_point) * scale``."""
    steps = as_term(context, scale, DType.FLOAT32)
    zero = as_term(context, 0 if zero_point is None else zero_point, x.dtype)
    zero = zero if zero.rank == steps.rank else zero.expand(*steps.shape)
    found = context.emitted(DequantizeLinear(axis), x, _line(steps), _line(zero))
    return found.cast(context.dtype)


def quantize_channels(
    context: Context, x: Term, scales: Term, zero_points: Term, axis: int, **rest: Any
) -> Term:
    """As ``quantize``, with a scale for each index of a dimension."""
    return quantize(context, x, scales, zero_points, axis=axis % x.rank, **rest)


def dequantize_channels(
    context: Context, x: Term, scales: Term, zero_points: Term | None, axis: int, **rest: Any
) -> Term:
    """As ``dequantize``, with a scale for each index of a dimension."""
    return dequantize(context, x, scales, zero_points, axis=axis % x.rank, **rest)


def _line(value: Term) -> Term:
    """One number has no dimension."""
    return value.reshape() if value.tensor.type.elements == 1 else value


def _number(context: Context, value: Term | Number) -> Number:
    if not isinstance(value, Term):
        return value
    found: Number = context.known_value(value).reshape(()).item()
    return found


QUANTIZED: dict[str, Converter] = {
    "quantized_decomposed.dequantize_per_channel": dequantize_channels,
    "quantized_decomposed.dequantize_per_tensor": dequantize,
    "quantized_decomposed.quantize_per_channel": quantize_channels,
    "quantized_decomposed.quantize_per_tensor": quantize,
}
