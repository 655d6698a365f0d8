"""Common code of integer operators: checks of attributes and types, and windows."""

import numpy as np

from ....dtypes import DType
from ....errors import GraphError
from ...types import TensorType
from ..protocol import Array, require, require_inputs

__all__ = [
    "F32",
    "Pads",
    "Pair",
    "check",
    "is_int8",
    "require_bytes",
    "require_exactly",
    "require_image",
    "require_pair",
    "sliding_windows",
    "window_counts",
]

F32 = np.float32

Pair = tuple[int, int]
"""Height, width."""
Pads = tuple[int, int, int, int]
"""Top, left, bottom, right."""


def is_int8(value: int) -> bool:
    """True if ``value`` is one of int8."""
    return -128 <= value <= 127


def check(operator: object, holds: bool, required: str) -> None:
    """Raise GraphError, with the operator's attributes, unless ``holds``."""
    if not holds:
        raise GraphError(f"{operator}: required {required}")


def require_exactly(operator: object, found: TensorType, required: TensorType) -> None:
    """Raise GraphError unless a type is the required one."""
    require(operator, found == required, found, str(required))


def require_bytes(operator: object, x: TensorType) -> None:
    """Raise GraphError unless ``x`` is int8."""
    require(operator, x.dtype == DType.INT8, x, "int8")


def require_pair(operator: object, inputs: tuple[TensorType, ...]) -> TensorType:
    """The type of the first of two int8 operands, to whose shape the second is repeated.

    Raises GraphError for others.
    """
    x, other = require_inputs(operator, inputs, 2)
    require_bytes(operator, x)
    require_bytes(operator, other)
    fits = x.rank == other.rank and all(
        size in (1, whole) for size, whole in zip(other.shape, x.shape, strict=True)
    )
    require(operator, fits, other, f"{x}, or 1 in place of some of its sizes")
    return x


def require_image(operator: object, inputs: tuple[TensorType, ...]) -> TensorType:
    """The only input.  Raises GraphError unless there is one, int8[1, H, W, C]."""
    (x,) = require_inputs(operator, inputs, 1)
    fits = len(x.shape) == 4 and x.shape[0] == 1 and x.dtype == DType.INT8
    require(operator, fits, x, "int8[1, H, W, C]")
    return x


def window_counts(shape: tuple[int, ...], kernel: Pair, strides: Pair, pads: Pads) -> Pair:
    """Rows and columns of windows on an image of ``shape``.

    Raises GraphError when not one fits.
    """
    height = (shape[1] + pads[0] + pads[2] - kernel[0]) // strides[0] + 1
    width = (shape[2] + pads[1] + pads[3] - kernel[1]) // strides[1] + 1
    if height < 1 or width < 1:
        raise GraphError(f"a {kernel[0]}x{kernel[1]} window does not fit {shape[1]}x{shape[2]}")
    return height, width


def sliding_windows(x: Array, kernel: Pair, strides: Pair, pads: Pads, fill: int) -> Array:
    """Every window: [1, OH, OW, C, KH, KW]."""
    top, left, bottom, right = pads
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(1, 2))
    return view[:, :: strides[0], :: strides[1]]
