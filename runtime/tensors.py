"""Tensors as a module's inputs and outputs have them."""

from dataclasses import dataclass

from .errors import ModuleError

__all__ = ["TensorSignature"]

DTYPES = frozenset(
    ("bool", "bfloat16", *(f"float{bits}" for bits in (16, 32, 64)))
    + tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
)
MOST = 1 << 62
"""Elements that a tensor has at the most."""


@dataclass(frozen=True, slots=True)
class TensorSignature:
    """Name, shape and element type (a NumPy name) of an input or output; -1 is any size."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    def __post_init__(self) -> None:
        """Raises ModuleError for sizes and element types that there are not."""
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
        sizes = ", ".join("any" if size < 0 else str(size) for size in self.shape)
        return f"{self.name}: {self.dtype}[{sizes}]"
