"""Element types of tensors."""

from enum import StrEnum

import numpy as np

__all__ = ["DType"]


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
