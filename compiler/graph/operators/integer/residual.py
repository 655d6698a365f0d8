"""Sums of products with a tensor of bytes added before they are bytes."""

from collections.abc import Sequence

import numpy as np

from dovetail.isa.frozen import frozen
from dovetail.isa.requantize import WIDE_LIMIT

from ....dtypes import DType
from ...types import TensorType
from ..protocol import Array, Opaque, require, require_inputs
from .rules import F32, check, is_int8, require_exactly

__all__ = ["MOST_FACTOR", "RequantizeAdd"]

MOST_FACTOR = 1 << 12


@frozen
class RequantizeAdd(Opaque):
    """Requantised sums of products, and a tensor of bytes added: int32[..., C], float32[C] and
    int8[..., C] to int8[..., C].

        z = clip(rint(float32(x) * scale), -w, w)                   w = 2^19
        y = clip(rint(float32(z + factor * (r - r_zero_point)) * step) + zero_point, low, high)

    So both terms are in steps of ``step`` of the result, that of the bytes without rounding.  Where
    a model adds floats, its bytes and these differ where its sum is within half a step of a tie.
    """

    factor: int
    step: float
    r_zero_point: int
    zero_point: int
    low: int
    high: int

    def __post_init__(self) -> None:
        check(self, 1 <= self.factor <= MOST_FACTOR, f"a factor in 1..{MOST_FACTOR}")
        check(self, 0 < self.step < np.inf, "a step above 0")
        numbers = self.r_zero_point, self.zero_point, self.low, self.high
        check(self, all(map(is_int8, numbers)), "zero points and limits in -128..127")
        check(self, self.low <= self.high, "low <= high")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError unless there are sums, a scale for each channel, and as many bytes."""
        x, scale, r = require_inputs(self, inputs, 3)
        require(self, x.dtype == DType.INT32 and bool(x.shape), x, "int32[..., C]")
        require_exactly(self, scale, TensorType(x.shape[-1:], DType.FLOAT32))
        y = TensorType(x.shape, DType.INT8)
        require_exactly(self, r, y)
        return (y,)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The formula; sums of both terms are whole numbers of float32."""
        x, scale, r = inputs
        z = np.clip(np.rint(x.astype(F32) * scale), -WIDE_LIMIT, WIDE_LIMIT)
        moved = self.factor * (r.astype(np.int32) - self.r_zero_point)
        total = (z + moved.astype(F32)) * F32(self.step)
        y = np.clip(np.rint(total) + self.zero_point, self.low, self.high)
        return (y.astype(np.int8),)
