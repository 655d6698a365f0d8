"""Element types, and what a quantised tensor's bytes stand for."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

__all__ = ["DType", "Quantization"]


class DType(StrEnum):
    """Element types of the graph IR; each is spelled as NumPy spells it."""

    INT8 = "int8"
    UINT8 = "uint8"
    INT32 = "int32"
    FLOAT32 = "float32"

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy type."""
        return np.dtype(self.value)

    @property
    def bytes(self) -> int:
        """Bytes an element takes."""
        return self.numpy.itemsize


@dataclass(frozen=True, slots=True)
class Quantization:
    """An int8 tensor's meaning: ``real = (q - zero_point) * scale``, one scale for the tensor.

    scale: float32, finite, above 0.  zero_point: -128..127.
    """

    scale: np.float32
    zero_point: int

    def quantize(self, real: NDArray[np.float32]) -> NDArray[np.int8]:
        """``clip(rint(real / scale) + zero_point, -128, 127)`` in float32, half to even."""
        with np.errstate(over="ignore"):
            steps = np.rint(np.asarray(real, np.float32) / self.scale).astype(np.float64)
        return np.clip(steps + self.zero_point, -128, 127).astype(np.int8)

    def dequantize(self, values: NDArray[np.int8]) -> NDArray[np.float32]:
        """``float32(values - zero_point) * scale``."""
        return (values.astype(np.int32) - self.zero_point).astype(np.float32) * self.scale
