"""Scales as TensorFlow Lite's kernels use them: multipliers, shifts, limits of activations.

Source: TensorFlow Lite, ``quantization_util.cc`` and ``kernel_util.cc``.
"""

from math import frexp

import numpy as np

from ...dtypes import DType
from ...errors import ModelError
from ...graph.formulas import Term
from .node import Node
from .schema import Quantization

__all__ = [
    "ACTIVATIONS",
    "activated",
    "activation_limits",
    "limits_of",
    "quantize_multiplier",
    "quantized_value",
    "signed_limits",
    "signed_zero",
]

ACTIVATIONS = {0: (None, None), 1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
"""Limits of fused activations: none, ReLU, ReLU between -1 and 1, ReLU6."""
TANH = 4


def quantize_multiplier(real: float) -> tuple[int, int]:
    """``multiplier * 2**(shift - 31)`` next to ``real``, 0 or more.

    multiplier: 0, or 2**30..2**31 - 1; 0 where the shift would be below -31.
    """
    if not np.isfinite(real) or real < 0:
        raise ModelError(f"a scale of {real}; required a finite one, 0 or more")
    fraction, shift = frexp(real)
    multiplier = int(np.floor(fraction * (1 << 31) + 0.5))
    if multiplier == 1 << 31:
        multiplier, shift = multiplier // 2, shift + 1
    if shift < -31:
        return 0, 0
    if shift > 31:
        raise ModelError(f"a scale of {real:g} is too large; required less than 2**31")
    return multiplier, shift


def limits_of(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest integer of a type."""
    info = np.iinfo(dtype.numpy)  # type: ignore[type-var]
    return int(info.min), int(info.max)


def quantized_value(scale: Quantization, real: float) -> int:
    """``zero_point + round(real / scale)`` in float32, half away from zero."""
    quotient = np.float32(real) / np.float32(scale.scale)
    rounded = np.floor(np.abs(quotient) + np.float32(0.5)) * np.sign(quotient)
    return scale.zero_point + int(rounded)


def activation_limits(node: Node, dtype: DType | None = None) -> tuple[int, int]:
    """The smallest and the largest value of the quantised result after its fused activation."""
    dtype = dtype or node.result().dtype
    low, high = limits_of(dtype)
    first, last = _activation(node)
    scale = node.result_scale()
    if first is not None:
        low = max(low, quantized_value(scale, first))
    if last is not None:
        high = min(high, quantized_value(scale, last))
    if low > high:
        raise ModelError(f"{node}: no value of its result is within its activation's limits")
    return low, high


def signed_limits(node: Node) -> tuple[int, int]:
    """``activation_limits`` of bytes as int8: 128 less for uint8."""
    low, high = activation_limits(node)
    shift = 128 if node.result().dtype == DType.UINT8 else 0
    return low - shift, high - shift


def signed_zero(scale: Quantization, dtype: DType) -> int:
    """The zero point of bytes as int8: 128 less for uint8."""
    return scale.zero_point - (128 if dtype == DType.UINT8 else 0)


def activated(node: Node, x: Term) -> Term:
    """The fused activation of a tensor that is not quantised."""
    if node.attribute("fused_activation_function") == TANH:
        return x.tanh()
    first, last = _activation(node)
    if first is not None:
        x = x.maximum(first)
    return x if last is None else x.minimum(last)


def _activation(node: Node) -> tuple[float | None, float | None]:
    number = node.attribute("fused_activation_function")
    if number not in ACTIVATIONS:
        raise node.unsupported(f"fused activation {number}")
    return ACTIVATIONS[number]
