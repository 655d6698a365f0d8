"""Real numbers as integers with a scale and a zero point.

Source: ONNX, QuantizeLinear and DequantizeLinear.
"""

from collections.abc import Sequence

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ..types import TensorType
from .elementwise import Cast
from .protocol import Array, Opaque, require, require_inputs

__all__ = ["STORED", "DequantizeLinear", "QuantizeLinear", "aligned_shape"]

STORED = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)
"""Element types of quantised activations; biases are int32."""


def aligned_shape(parameter: tuple[int, ...], x: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """The shape in which a scale or zero point broadcasts to ``x``: one number, or a list of one
    number for each index of ``axis``.
    """
    if parameter in ((), (1,)):
        return ()
    return tuple(parameter[0] if place == axis else 1 for place in range(len(x)))


def _require_parameters(
    operator: "QuantizeLinear | DequantizeLinear", x: TensorType, parameters: Sequence[TensorType]
) -> None:
    for each in parameters:
        require(operator, each.rank <= 1, each, "one number or a list")
        if each.shape not in ((), (1,)):
            fits = 0 <= operator.axis < x.rank and each.shape == (x.shape[operator.axis],)
            require(operator, fits, each, f"one number for each index of axis {operator.axis}")


@frozen
class QuantizeLinear(Opaque):
    """``saturate(rint(x / scale) + zero_point)``.

    x: float32, scale: float32, zero_point: of the result's type, one of ``STORED``.
    axis: the dimension that lists of scales and zero points belong to.
    """

    axis: int

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The shape of ``x``, the element type of the zero point."""
        x, scale, zero = require_inputs(self, inputs, 3)
        floats = x.dtype == scale.dtype == DType.FLOAT32
        require(self, floats, f"{x} and scale {scale}", "float32")
        require(self, zero.dtype in STORED, f"zero point {zero}", "int8, uint8, int16 or uint16")
        _require_parameters(self, x, (scale, zero))
        return (TensorType(x.shape, zero.dtype),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """In float32, each operation in the order written; the smallest value for NaN."""
        x, scale, zero = inputs
        limits = np.iinfo(zero.dtype)
        scale, offset = (
            each.reshape(aligned_shape(each.shape, x.shape, self.axis)).astype(np.float32)
            for each in (scale, zero)
        )
        with np.errstate(all="ignore"):
            steps = np.rint(np.rint(x / scale) + offset)
        steps = np.where(np.isnan(steps), np.float32(limits.min), steps)
        clipped = np.minimum(np.maximum(steps, np.float32(limits.min)), np.float32(limits.max))
        return Cast(DType(str(zero.dtype))).evaluate([np.asarray(clipped)])


@frozen
class DequantizeLinear(Opaque):
    """``(x - zero_point) * scale``, the difference in int32, the product in float32.

    x: int32 or one of ``STORED``, zero_point: of the type of ``x``, scale: float32.
    axis: the dimension that lists of scales and zero points belong to.
    """

    axis: int

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """float32 in the shape of ``x``."""
        x, scale, zero = require_inputs(self, inputs, 3)
        require(self, x.dtype in (*STORED, DType.INT32), x, "int8, uint8, int16, uint16 or int32")
        require(self, scale.dtype == DType.FLOAT32, f"scale {scale}", "float32")
        require(self, zero.dtype == x.dtype, f"zero point {zero}", str(x.dtype))
        _require_parameters(self, x, (scale, zero))
        return (TensorType(x.shape, DType.FLOAT32),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """By NumPy's arithmetic."""
        x, scale, zero = inputs
        scale, offset = (
            each.reshape(aligned_shape(each.shape, x.shape, self.axis)) for each in (scale, zero)
        )
        steps = x.astype(np.int32) - offset.astype(np.int32)
        return (np.asarray(steps.astype(np.float32) * scale),)
