"""Softmax of rows by an integer table of exponentials, as an accelerator computes it."""

from collections.abc import Sequence
from math import isfinite

import numpy as np

from dovetail.isa.frozen import frozen

from ...types import TensorType
from ..protocol import Array, Opaque, require, require_inputs
from .rules import F32, check, is_int8, require_bytes

__all__ = ["MOST_ROW", "RowSoftmax", "exponential_table"]

LARGEST = 127 * 256 + 127
"""The exponential of the largest element of a row: the largest sum of two bytes, the upper one 0 or
more.
"""
MOST_ROW = (1 << 31) // LARGEST - 1
"""Elements of a row, at most: their sum is an int32."""


def exponential_table(x_scale: float) -> Array:
    """``rint(32639 * exp((i - 255) * x_scale))``: int32[256], of differences -255 to 0."""
    step = float(F32(x_scale))
    exponentials = np.exp((np.arange(256) - 255) * step)
    table: Array = np.rint(LARGEST * exponentials).astype(np.int32)
    return table


@frozen
class RowSoftmax(Opaque):
    """Softmax over the last dimension, int8[..., C] to int8, with sums of integers.

    ``e = table[x - max(x) + 255]``, ``clip(rint(float32(e) * (steps / float32(sum(e)))) +
    zero_point)``: the table is ``exponential_table``, ``steps`` is ``floor(1 / scale)``; quotient,
    product and conversions are float32.

    Beside ONNX Runtime's QLinearSoftmax (``Softmax``) at most one step off, and in at most 0.1 % of
    the bytes of random rows (docs/transformers.md).
    """

    x_scale: float
    scale: float
    zero_point: int

    def __post_init__(self) -> None:
        for scale in (self.x_scale, self.scale):
            check(self, isfinite(scale) and scale > 0, "finite scales above 0")
        check(self, is_int8(self.zero_point), "a zero point in -128..127")

    @property
    def steps(self) -> float:
        """Steps of the result in 1."""
        return float(np.floor(F32(1) / F32(self.scale)))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when it is not given rows of bytes, or rows too long."""
        (x,) = require_inputs(self, inputs, 1)
        require_bytes(self, x)
        require(self, bool(x.shape) and x.shape[-1] <= MOST_ROW, x, f"rows of up to {MOST_ROW}")
        return (x,)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By indexing the table."""
        (x,) = inputs
        wide = x.astype(np.int32)
        e = exponential_table(self.x_scale)[wide - wide.max(axis=-1, keepdims=True) + 255]
        total = e.sum(axis=-1, keepdims=True, dtype=np.int32).astype(F32)
        result = np.rint(e.astype(F32) * (F32(self.steps) / total)) + self.zero_point
        return (np.clip(result, -128, 127).astype(np.int8),)
