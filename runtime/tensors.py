"""Tensors as a module's inputs and outputs have them."""

from typing import Any

from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from .dlpack import Borrowed
from .errors import ModuleError

__all__ = ["TensorSignature"]

DTYPES = frozenset(
    ["bool", "bfloat16", *(f"float{bits}" for bits in (16, 32, 64))]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
MOST = 1 << 62
"""Elements that a tensor has at the most."""


@frozen
class TensorSignature:
    """Name, shape and element type (a NumPy name) of an input or output; -1 is any size."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    def __post_init__(self) -> None:
        """Raises ModuleError for sizes and element types that do not exist."""
        count = 1
        for size in self.shape:
            count *= max(size, 1)
        if min(self.shape, default=0) < -1 or count > MOST:
            raise ModuleError(f"tensor {self.name!r} has shape {list(self.shape)}")
        if self.dtype not in DTYPES:
            raise ModuleError(
                f"tensor {self.name!r} has elements of type {self.dtype!r}; there are: "
                f"{', '.join(sorted(DTYPES))}"
            )

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}"

    @property
    def kind(self) -> str:
        """Type and shape: "float32[1, any]"."""
        sizes = ", ".join("any" if size < 0 else str(size) for size in self.shape)
        return f"{self.dtype}[{sizes}]"

    def fits(self, array: NDArray[Any] | Borrowed) -> bool:
        """True if ``array`` is of this type and shape."""
        if array.dtype != self.dtype:
            return False
        return array.shape == self.shape or (
            len(array.shape) == len(self.shape)
            and all(w in (n, -1) for n, w in zip(array.shape, self.shape, strict=True))
        )
