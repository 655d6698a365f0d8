"""Between int8 tensors and what a model's user sees: floats and uint8."""

from collections.abc import Sequence
from math import isfinite

from dovetail.isa.frozen import frozen
from dovetail.runtime import host

from ....dtypes import DType
from ...types import TensorType
from ..protocol import Array, Opaque, require, require_inputs
from .rules import check, is_int8, require_bytes

__all__ = ["Dequantize", "Quantize", "Shift128"]


@frozen
class Quantize(Opaque):
    """``clip(rint(x / scale) + zero_point, -128, 127)``: float32 to int8."""

    scale: float
    zero_point: int

    def __post_init__(self) -> None:
        check(self, isfinite(self.scale) and self.scale > 0, "a finite scale above 0")
        check(self, is_int8(self.zero_point), "a zero point in -128..127")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when it is not given floats."""
        (x,) = require_inputs(self, inputs, 1)
        require(self, x.dtype == DType.FLOAT32, x, "float32")
        return (TensorType(x.shape, DType.INT8),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """As the host of an accelerator computes it."""
        return (host.quantize(inputs[0], self.scale, self.zero_point),)


@frozen
class Dequantize(Opaque):
    """``(x - zero_point) * scale``: int8 to float32."""

    scale: float
    zero_point: int

    def __post_init__(self) -> None:
        check(self, isfinite(self.scale) and self.scale > 0, "a finite scale above 0")
        check(self, is_int8(self.zero_point), "a zero point in -128..127")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when it is not given bytes."""
        (x,) = require_inputs(self, inputs, 1)
        require_bytes(self, x)
        return (TensorType(x.shape, DType.FLOAT32),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """As the host of an accelerator computes it."""
        return (host.dequantize(inputs[0], self.scale, self.zero_point),)


@frozen
class Shift128(Opaque):
    """uint8 to int8 by subtracting 128, or int8 to uint8 by adding it."""

    to: str

    def __post_init__(self) -> None:
        check(self, self.to in ("int8", "uint8"), "int8 or uint8")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when it is not given the other type of the two."""
        (x,) = require_inputs(self, inputs, 1)
        wanted = DType.UINT8 if self.to == DType.INT8 else DType.INT8
        require(self, x.dtype == wanted, x, wanted)
        return (TensorType(x.shape, self.to),)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """As the host of an accelerator computes it."""
        return (host.shift128(inputs[0], self.to),)
