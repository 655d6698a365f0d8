"""Types of tensors."""

from math import prod

from dovetail.isa.frozen import frozen

from ..dtypes import DType
from ..errors import GraphError

__all__ = ["TensorType"]

DTYPES = {str(each): each for each in DType}


MOST_ELEMENTS = 1 << 40
"""Elements of the largest tensor: more than any memory holds, yet no product of sizes overflows."""


@frozen
class TensorType:
    """Shape and element type."""

    shape: tuple[int, ...]
    dtype: DType

    def __init__(self, shape: tuple[int, ...], dtype: DType | str) -> None:
        """``dtype`` may be given by its NumPy name.

        Raises GraphError for a negative dimension, too many elements, or an element type that the
        IR does not have.
        """
        found = DTYPES.get(str(dtype))
        if found is None:
            raise GraphError(f"element type {dtype}; required one of {', '.join(DType)}")
        if any(size < 0 for size in shape):
            raise GraphError(f"shape {shape}; required dimensions of at least 0")
        if max(prod(shape), *shape, 0) > MOST_ELEMENTS:
            raise GraphError(f"shape {shape}; required at most 2**40 elements")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", found)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)
