"""Element types of tensors."""

from enum import StrEnum

import ml_dtypes
import numpy as np

__all__ = ["DType"]


class DType(StrEnum):
    """Element types of the graph IR; each is spelled as NumPy spells it."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"

    @property
    def is_float(self) -> bool:
        """True if it holds fractions."""
        return self in (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)

    @property
    def is_signed(self) -> bool:
        """True if it holds negative numbers."""
        return self.value.startswith("int") or self.is_float

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy type."""
        return _NUMPY[self]

    @property
    def bytes(self) -> int:
        """Bytes an element takes."""
        return _NUMPY[self].itemsize


_NUMPY: dict[DType, np.dtype[np.generic]] = {
    dtype: np.dtype(ml_dtypes.bfloat16 if dtype is DType.BFLOAT16 else dtype.value)
    for dtype in DType
}
