"""Sums of a few terms, each of which has factors of its own, in fixed point."""

from collections.abc import Sequence

import numpy as np

from dovetail.isa.frozen import frozen
from dovetail.isa.requantize import WIDE_LIMIT

from ....dtypes import DType
from ...types import TensorType
from ..protocol import Array, Opaque, require, require_inputs
from .rules import F32, check, is_int8, require_bytes, require_exactly

__all__ = ["FRACTION_BITS", "ScaledSum", "ScalesOfWords"]

FRACTION_BITS = 11
"""Bits of a term behind its point: one reaches 256 steps of the result."""


@frozen
class ScaledSum(Opaque):
    """Sums of ``terms`` int32 each, times float32: int32[..., terms * C / repeats] and factors
    float32[..., terms * C] to int8[..., C].

        t = clip(rint(float32(x) * factor), -w, w)      w = 2^19, 11 bits behind the point
        y = clip(rint(float32(sum of t) * 2^-11) + zero_point)

    Term ``n`` of channel ``c`` has factor ``n * C + c``.  Of ``C / repeats`` numbers, which come
    again and again in other channels, it is number ``c mod C / repeats``.  So rotary positions are
    sums of two: factors are cosines and sines, times the scale of what they turn.
    """

    zero_point: int
    terms: int = 2
    repeats: int = 1

    def __post_init__(self) -> None:
        check(self, is_int8(self.zero_point), "a zero point in -128..127")
        # Sums of so many are whole numbers of float32.
        check(self, 1 <= self.terms <= 16, "1 to 16 terms")
        check(self, self.repeats >= 1, "repeats of 1 and more")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when there is not one factor for each element of whole terms."""
        x, factors = require_inputs(self, inputs, 2)
        whole = bool(x.shape) and x.shape[-1] % self.terms == 0
        require(self, x.dtype == DType.INT32 and whole, x, f"int32[..., {self.terms} * C]")
        size = x.shape[-1] * self.repeats
        require_exactly(self, factors, TensorType((*x.shape[:-1], size), DType.FLOAT32))
        return (TensorType((*x.shape[:-1], size // self.terms), DType.INT8),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Each product in float32; the sums are exact."""
        x, factors = inputs
        shape = *x.shape[:-1], self.terms, self.repeats, x.shape[-1] // self.terms
        apart = x.astype(F32).reshape(*shape[:-2], 1, shape[-1]) * factors.reshape(shape)
        products = np.clip(np.rint(apart), -WIDE_LIMIT, WIDE_LIMIT).sum(axis=-3)
        total = np.rint(products.reshape(*x.shape[:-1], -1) * F32(2.0**-FRACTION_BITS)).astype(
            np.float64
        )
        return (np.clip(total + self.zero_point, -128, 127).astype(np.int8),)


@frozen
class ScalesOfWords(Opaque):
    """The scales in words of an accelerator's parameters, which bytes of a tensor are:
    int8[1, 1, 8 * W, lanes] to float32[1, 1, pixels, W / pixels * lanes].

    A word is a bias of int32 for each lane, then a scale of float32, each from its lowest byte on.
    The words of a block's pixels follow each other.
    So the host gives a program numbers that it computes again for each run.
    """

    lanes: int
    pixels: int = 1

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when it is not given whole words."""
        (x,) = require_inputs(self, inputs, 1)
        require_bytes(self, x)
        fits = x.rank == 4 and x.shape[:2] == (1, 1) and x.shape[3] == self.lanes
        whole = fits and x.shape[2] % (8 * self.pixels) == 0
        require(self, whole, x, f"int8[1, 1, {8 * self.pixels} * N, {self.lanes}]")
        size = x.shape[2] // (8 * self.pixels) * self.lanes
        return (TensorType((1, 1, self.pixels, size), DType.FLOAT32),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By the bytes."""
        words = inputs[0].reshape(-1, 8 * self.lanes)[:, 4 * self.lanes :]
        scales = np.ascontiguousarray(words).view("<f4").reshape(-1, self.pixels, self.lanes)
        return (scales.swapaxes(0, 1).reshape(1, 1, self.pixels, -1),)
