"""TensorFlow Lite's integer layers: scales are int32 multipliers and shifts, rounded twice.

``scaled(x, m, s)`` is ``x * m * 2**(s - 31)``: the product is rounded half up, then shifted right,
rounded half away from zero.
Source: TensorFlow Lite's reference kernels, ``MultiplyByQuantizedMultiplier`` and
``MultiplyByQuantizedMultiplierSmallerThanOneExp`` with two roundings.
"""

from collections.abc import Sequence

import numpy as np

from dovetail.isa.frozen import frozen

from ....dtypes import DType
from ...types import TensorType
from ..protocol import Array, Opaque, require, require_inputs
from .rules import check, is_int8, require_exactly, require_pair, sliding_windows, window_counts
from .windows import PaddedWindows

__all__ = [
    "AddFixed",
    "AverageFixed",
    "MultiplyFixed",
    "RequantizeFixed",
    "RequantizeReal",
    "half_away",
    "scaled",
]

LARGEST_MULTIPLIER = (1 << 31) - 1
LARGEST_SHIFT = 31


def scaled(x: Array, multiplier: Array | int, shift: Array | int) -> Array:
    """``x * multiplier * 2**(shift - 31)``, rounded twice: int64 of int32 values.

    x: integers of int32's range.  multiplier: -(2**31 - 1)..2**31 - 1.  shift: -31..31; above 0, x
    is shifted left before, and wraps as int32 does.  ``x * multiplier / 2**31`` is rounded half up.
    Its quotient by ``2**-shift`` is rounded half away from zero.
    """
    amount = np.asarray(shift, np.int64)
    left = (x.astype(np.int64) << np.maximum(amount, 0)).astype(np.int32).astype(np.int64)
    high = (left * np.asarray(multiplier, np.int64) + (1 << 30)) >> 31
    right = np.maximum(-amount, 0)
    half, odd = (np.int64(1) << right) >> 1, (high < 0) & (right > 0)
    return np.asarray((high + half - odd) >> right)


def half_away(x: Array) -> Array:
    """The nearest whole numbers of floats, halves away from zero: C's ``round``."""
    whole = np.trunc(x)
    return np.asarray(whole + np.trunc((x - whole) * 2))


@frozen
class RequantizeFixed(Opaque):
    """``clip(scaled(x, multiplier, shift) + zero_point, low, high)``.

    x: int32[..., O], multiplier: int32[O], 0 or more, shift: int32[O] in -31..31, to int8[..., O].
    """

    zero_point: int
    low: int
    high: int

    def __post_init__(self) -> None:
        _check_result(self, self.zero_point, self.low, self.high)

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when there is not one multiplier and shift for each channel."""
        x, multiplier, shift = require_inputs(self, inputs, 3)
        require(self, x.dtype == DType.INT32 and bool(x.shape), x, "int32[..., O]")
        for each in (multiplier, shift):
            require_exactly(self, each, TensorType(x.shape[-1:], DType.INT32))
        return (TensorType(x.shape, DType.INT8),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """In int64, which holds every product."""
        total = scaled(*inputs) + self.zero_point
        return (np.clip(total, self.low, self.high).astype(np.int8),)


@frozen
class RequantizeReal(Opaque):
    """``clip(round(float64(x) * scale) + zero_point, low, high)``, halves away from zero.

    x: int32[..., O], scale: float64[O] to int8[..., O].
    Source: TensorFlow Lite's reference kernel of FULLY_CONNECTED, which rounds once.
    """

    zero_point: int
    low: int
    high: int

    def __post_init__(self) -> None:
        _check_result(self, self.zero_point, self.low, self.high)

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when there is not one scale for each channel."""
        x, scale = require_inputs(self, inputs, 2)
        require(self, x.dtype == DType.INT32 and bool(x.shape), x, "int32[..., O]")
        require_exactly(self, scale, TensorType(x.shape[-1:], DType.FLOAT64))
        return (TensorType(x.shape, DType.INT8),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """One product in float64, limited before it becomes an integer."""
        x, scale = inputs
        rounded = half_away(x.astype(np.float64) * scale) + self.zero_point
        return (np.clip(rounded, self.low, self.high).astype(np.int8),)


@frozen
class AddFixed(Opaque):
    """``clip(scaled(a' + b', multiplier, shift) + zero_point, low, high)``, with
    ``a' = scaled((a - a_zero_point) * 2**left_shift, a_multiplier, a_shift)`` and ``b'`` likewise.

    a: int8, b: int8 of as many dimensions, each that of ``a`` or 1.  Shifts are 0 or less.
    b_multiplier: below 0 for a difference, ``a - b``.  left_shift: 20 in TensorFlow Lite.
    """

    a_zero_point: int
    a_multiplier: int
    a_shift: int
    b_zero_point: int
    b_multiplier: int
    b_shift: int
    multiplier: int
    shift: int
    zero_point: int
    low: int
    high: int
    left_shift: int = 20

    def __post_init__(self) -> None:
        _check_result(self, self.zero_point, self.low, self.high)
        for zero_point in (self.a_zero_point, self.b_zero_point):
            check(self, is_int8(zero_point), "zero points in -128..127")
        for multiplier in (self.a_multiplier, self.b_multiplier, self.multiplier):
            check(self, abs(multiplier) <= LARGEST_MULTIPLIER, "multipliers below 2**31")
        for shift in (self.a_shift, self.b_shift, self.shift):
            check(self, -LARGEST_SHIFT <= shift <= 0, "shifts in -31..0")
        check(self, 0 <= self.left_shift <= 21, "a left shift in 0..21")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when the second operand is not repeated to the shape of the first."""
        return (require_pair(self, inputs),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Sums of two scaled operands are within int32."""
        a, b = (each.astype(np.int64) for each in inputs)
        left = scaled((a - self.a_zero_point) << self.left_shift, self.a_multiplier, self.a_shift)
        right = scaled((b - self.b_zero_point) << self.left_shift, self.b_multiplier, self.b_shift)
        total = scaled(left + right, self.multiplier, self.shift) + self.zero_point
        return (np.clip(total, self.low, self.high).astype(np.int8),)


@frozen
class MultiplyFixed(Opaque):
    """``clip(scaled((a - a_zero_point) * (b - b_zero_point), multiplier, shift) + zero_point,
    low, high)``.

    a: int8, b: int8 of as many dimensions, each that of ``a`` or 1.
    """

    a_zero_point: int
    b_zero_point: int
    multiplier: int
    shift: int
    zero_point: int
    low: int
    high: int

    def __post_init__(self) -> None:
        _check_result(self, self.zero_point, self.low, self.high)
        for zero_point in (self.a_zero_point, self.b_zero_point):
            check(self, is_int8(zero_point), "zero points in -128..127")
        check(self, 0 <= self.multiplier <= LARGEST_MULTIPLIER, "a multiplier in 0..2**31 - 1")
        check(self, abs(self.shift) <= LARGEST_SHIFT, "a shift in -31..31")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when the second operand is not repeated to the shape of the first."""
        return (require_pair(self, inputs),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The product is exact."""
        a, b = (each.astype(np.int64) for each in inputs)
        product = (a - self.a_zero_point) * (b - self.b_zero_point)
        total = scaled(product, self.multiplier, self.shift) + self.zero_point
        return (np.clip(total, self.low, self.high).astype(np.int8),)


@frozen
class AverageFixed(PaddedWindows):
    """Mean of what of each window is in the image, rounded half away from zero, in low..high.

    int8[1, H, W, C] to int8[1, OH, OW, C].  unsigned: means are taken of the model's uint8 tensor,
    whose values are 128 more; low and high are of int8 nevertheless.
    """

    low: int
    high: int
    unsigned: bool = False

    def __post_init__(self) -> None:
        PaddedWindows.__post_init__(self)
        top, left, bottom, right = self.pads
        within = max(top, bottom) < self.kernel[0] and max(left, right) < self.kernel[1]
        check(self, within, "pads smaller than the kernel")
        check(self, -128 <= self.low <= self.high <= 127, "-128 <= low <= high <= 127")

    def counts(self, shape: tuple[int, ...]) -> Array:
        """Elements of each window that are in an image of ``shape``: int64[OH, OW]."""
        sides = []
        windows = window_counts(shape, self.kernel, self.strides, self.pads)
        for axis, count in enumerate(windows):
            start = np.arange(count) * self.strides[axis] - self.pads[axis]
            stop = np.minimum(start + self.kernel[axis], shape[1 + axis])
            sides.append(stop - np.maximum(start, 0))
        return np.multiply.outer(*sides)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Sums and quotients in int64."""
        shift = 128 if self.unsigned else 0
        x = inputs[0].astype(np.int64) + shift
        total = sliding_windows(x, self.kernel, self.strides, self.pads, 0).sum(axis=(4, 5))
        count = self.counts(x.shape)[:, :, None]
        mean = np.sign(total) * ((np.abs(total) + count // 2) // count) - shift
        return (np.clip(mean, self.low, self.high).astype(np.int8),)


def _check_result(operator: object, zero_point: int, low: int, high: int) -> None:
    check(operator, is_int8(zero_point), "a zero point in -128..127")
    check(operator, -128 <= low <= high <= 127, "-128 <= low <= high <= 127")
