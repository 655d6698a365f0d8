"""Element by element on integers: requantisation, sums, products, tables; and softmax of rows."""

from collections.abc import Sequence
from math import isfinite

import numpy as np

from dovetail.isa.frozen import frozen
from dovetail.runtime import host

from ....dtypes import DType
from ...types import TensorType
from ..protocol import Array, Opaque, require, require_inputs
from .rules import F32, check, is_int8, require_bytes, require_exactly, require_pair

__all__ = ["Add", "Lookup", "Multiply", "Requantize", "Softmax", "WeightedAdd"]


@frozen
class Requantize(Opaque):
    """``clip(rint(float32(x) * scale) + zero_point, low, high)``, the product in float32.

    x: int32[..., O], scale: float32[O] to int8.
    Source: ONNX Runtime's QLinearConv and QLinearMatMul on x86-64.
    """

    zero_point: int
    low: int
    high: int

    def __post_init__(self) -> None:
        check(self, is_int8(self.zero_point), "a zero point in -128..127")
        check(self, -128 <= self.low <= self.high <= 127, "-128 <= low <= high <= 127")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when there is not one scale for each channel."""
        x, scale = require_inputs(self, inputs, 2)
        require(self, x.dtype == DType.INT32 and bool(x.shape), x, "int32[..., O]")
        require_exactly(self, scale, TensorType(x.shape[-1:], DType.FLOAT32))
        return (TensorType(x.shape, DType.INT8),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Each step in float32; the sum with the zero point in float64, which is exact."""
        x, scale = inputs
        rounded = np.rint(x.astype(F32) * scale).astype(np.float64)
        return (np.clip(rounded + self.zero_point, self.low, self.high).astype(np.int8),)


@frozen
class Add(Opaque):
    """``clip(rint(fma(a, ra, fma(b, rb, offset))), low, high)`` in float32, ``fma`` rounding once.

    ``offset = zero_point - fma(za, ra, rb * zb)``.  a, b: int8 of one shape.  unsigned: the formula
    is evaluated on the uint8 tensors of the model, whose values and zero points are 128 more.
    Source: ONNX Runtime's QLinearAdd on x86-64 with AVX2; equal on all 65,536 pairs for each of 152
    sets of random parameters.
    """

    a_ratio: float
    b_ratio: float
    a_zero_point: int
    b_zero_point: int
    zero_point: int
    low: int
    high: int
    unsigned: bool = False

    def __post_init__(self) -> None:
        for ratio in (self.a_ratio, self.b_ratio):
            check(self, isfinite(ratio) and ratio > 0, "finite ratios above 0")
        for zero_point in (self.a_zero_point, self.b_zero_point, self.zero_point):
            check(self, is_int8(zero_point), "zero points in -128..127")
        check(self, -128 <= self.low <= self.high <= 127, "-128 <= low <= high <= 127")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when the operands are not int8 of one shape."""
        x, other = require_inputs(self, inputs, 2)
        require_bytes(self, x)
        require_exactly(self, other, x)
        return (x,)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Fused multiply-adds; float64 holds each product of int8 and float32 exactly."""
        a, b = inputs
        ra, rb = np.float64(F32(self.a_ratio)), np.float64(F32(self.b_ratio))
        shift = 128 if self.unsigned else 0
        product = np.float64(F32(rb * (self.b_zero_point + shift)))
        offset = F32(self.zero_point + shift) - F32(ra * (self.a_zero_point + shift) + product)
        inner = ((b.astype(np.float64) + shift) * rb + np.float64(offset)).astype(F32)
        total = ((a.astype(np.float64) + shift) * ra + inner).astype(F32)
        return (np.clip(np.rint(total) - shift, self.low, self.high).astype(np.int8),)


@frozen
class WeightedAdd(Opaque):
    """``clip(rint(float32(a * a_factor + b * b_factor + offset) * scale) + zero_point, low,
    high)``, the sum in int32: a form that a sum of another meaning has in whole numbers.

    a, b: int8 of one shape.  Factors are of 24 bits with their sign, the scale is of float32.
    """

    a_factor: int
    b_factor: int
    offset: int
    scale: float
    zero_point: int
    low: int
    high: int

    def __post_init__(self) -> None:
        most = max(abs(self.a_factor), abs(self.b_factor))
        check(self, most < 1 << 23, "factors within -(2**23 - 1)..2**23 - 1")
        largest = 128 * (abs(self.a_factor) + abs(self.b_factor)) + abs(self.offset)
        check(self, largest < 1 << 31, "sums of int32")
        check(self, 0 < self.scale <= 1, "a scale above 0 and at most 1")
        check(self, is_int8(self.zero_point), "a zero point in -128..127")
        check(self, -128 <= self.low <= self.high <= 127, "-128 <= low <= high <= 127")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when the operands are not int8 of one shape."""
        x, other = require_inputs(self, inputs, 2)
        require_bytes(self, x)
        require_exactly(self, other, x)
        return (x,)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The sum is exact; its conversion and its product with the scale round to float32."""
        a, b = (each.astype(np.int32) for each in inputs)
        total = a * self.a_factor + b * self.b_factor + self.offset
        rounded = np.rint(total.astype(F32) * F32(self.scale)).astype(np.float64)
        return (np.clip(rounded + self.zero_point, self.low, self.high).astype(np.int8),)


@frozen
class Multiply(Opaque):
    """``clip(rint(float32(float32((a - za) * (b - zb)) * ratio) + zero_point), low, high)``.

    a: int8, b: int8 of as many dimensions, each that of ``a`` or 1.  The sum with the zero point is
    rounded to float32 before ``rint``.  unsigned: as of ``Add``.
    Source: ONNX Runtime's QLinearMul on x86-64; equal on all 65,536 pairs for each of 350 sets of
    random parameters, 143 of them chosen so that other orders of rounding differ.
    """

    ratio: float
    a_zero_point: int
    b_zero_point: int
    zero_point: int
    low: int
    high: int
    unsigned: bool = False

    def __post_init__(self) -> None:
        check(self, isfinite(self.ratio) and self.ratio > 0, "a finite ratio above 0")
        for zero_point in (self.a_zero_point, self.b_zero_point, self.zero_point):
            check(self, is_int8(zero_point), "zero points in -128..127")
        check(self, -128 <= self.low <= self.high <= 127, "-128 <= low <= high <= 127")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when the second operand is not repeated to the shape of the first."""
        return (require_pair(self, inputs),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The product is exact; each further step is in float32."""
        a, b = (
            each.astype(np.int32) - zero_point
            for each, zero_point in zip(inputs, (self.a_zero_point, self.b_zero_point), strict=True)
        )
        shift = 128 if self.unsigned else 0
        total = (a * b).astype(F32) * F32(self.ratio) + F32(self.zero_point + shift)
        return (np.clip(np.rint(total) - shift, self.low, self.high).astype(np.int8),)


@frozen
class Lookup(Opaque):
    """``table[x + 128]``: x int8, table int8[256] to int8.

    With a table int8[C, 256] the channels of x, int8[..., C], have a row each.
    """

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when it is not given bytes and a table of them."""
        x, table = require_inputs(self, inputs, 2)
        require_bytes(self, x)
        rows = x.shape[-1:] if table.rank == 2 else ()
        require_exactly(self, table, TensorType((*rows, 256), DType.INT8))
        return (x,)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By indexing the table."""
        x, table = inputs
        places = x.astype(np.int16) + 128
        return (table[places] if table.ndim == 1 else table[np.arange(len(table)), places],)


@frozen
class Softmax(Opaque):
    """Softmax over the last dimension, int8 to int8, by a table of float32 exponentials.

    ``e[i] = float32(exp((i - 255 + shift) * x_scale))``, ``v = e[x - max(x) + 255]``,
    ``clip(rint(v * floor(1 / scale) / sum(v)) + zero_point)``, where, for rows of ``n`` values,
    ``shift = max(0, log(largest float32 / n) - 5) / x_scale`` keeps the sum finite; less where
    ``1 / scale`` is above ``n * exp(5)``, so that the products are.
    Source: ONNX Runtime's QLinearSoftmax.
    """

    x_scale: float
    x_zero_point: int
    scale: float
    zero_point: int

    def __post_init__(self) -> None:
        for scale in (self.x_scale, self.scale):
            check(self, isfinite(scale) and scale > 0, "finite scales above 0")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when it is not given rows of bytes."""
        (x,) = require_inputs(self, inputs, 1)
        require(self, x.dtype == DType.INT8 and bool(x.shape), x, "int8[..., C]")
        return (x,)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """As the host of an accelerator computes it."""
        scales = self.x_scale, self.x_zero_point, self.scale, self.zero_point
        return (host.softmax(inputs[0], *scales),)
