"""Steps that the host takes before and after a launch, as a module holds them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from .. import host
from ..errors import ModuleError

__all__ = [
    "Dequantize",
    "Halves",
    "HostStep",
    "Image",
    "Quantize",
    "Reshape",
    "Select",
    "Shift128",
    "Softmax",
    "Transpose",
]

Array = NDArray[Any]

MOST_ROWS = 1 << 16
"""More rows than an image has."""


@frozen
class Quantize:
    """float32 to int8 (``host.quantize``)."""

    scale: float
    zero_point: int

    def __post_init__(self) -> None:
        _require_quantization(self.scale, self.zero_point)

    def run(self, x: Array) -> Array:
        """Raises InputError for NaN."""
        return host.quantize(x, self.scale, self.zero_point)


@frozen
class Dequantize:
    """int8 to float32 (``host.dequantize``)."""

    scale: float
    zero_point: int

    def __post_init__(self) -> None:
        _require_quantization(self.scale, self.zero_point)

    def run(self, x: Array) -> Array:
        """``(x - zero_point) * scale``."""
        return host.dequantize(x, self.scale, self.zero_point)


@frozen
class Softmax:
    """int8 to int8 over the last dimension (``host.softmax``)."""

    x_scale: float
    x_zero_point: int
    scale: float
    zero_point: int

    def __post_init__(self) -> None:
        _require_quantization(self.x_scale, self.x_zero_point)
        _require_quantization(self.scale, self.zero_point)

    def run(self, x: Array) -> Array:
        """Probabilities, quantised."""
        return host.softmax(x, self.x_scale, self.x_zero_point, self.scale, self.zero_point)


@frozen
class Shift128:
    """uint8 to int8 by subtracting 128, or back; ``to`` is "int8" or "uint8"."""

    to: str

    def __post_init__(self) -> None:
        if self.to not in ("int8", "uint8"):
            raise ModuleError(f"shift128 to {self.to!r}; required int8 or uint8")

    def run(self, x: Array) -> Array:
        """The same bytes, with their highest bit inverted."""
        return host.shift128(x, self.to)


@frozen
class Reshape:
    """The same elements in another shape."""

    shape: tuple[int, ...]

    def run(self, x: Array) -> Array:
        """A view where there can be one."""
        try:
            return x.reshape(self.shape)
        except (ValueError, OverflowError):
            raise ModuleError(
                f"the host cannot reshape {list(x.shape)} to {list(self.shape)}; compile it again"
            ) from None


@frozen
class Transpose:
    """Dimension ``permutation[n]`` becomes dimension ``n``."""

    permutation: tuple[int, ...]

    def run(self, x: Array) -> Array:
        """A contiguous copy."""
        if sorted(self.permutation) != list(range(x.ndim)):
            raise ModuleError(
                f"the host cannot permute {x.ndim} dimensions by {list(self.permutation)}; "
                "compile it again"
            )
        return np.ascontiguousarray(x.transpose(self.permutation))


@frozen
class Select:
    """Some pixels of an image, ``size`` from ``start`` on, ``steps`` apart, and some channels."""

    start: tuple[int, int]
    steps: tuple[int, int]
    size: tuple[int, int]
    channels: tuple[int, ...]

    def run(self, x: Array) -> Array:
        """T[1, H, W, C] to T[1, ``size``, ``len(channels)``]."""
        axes = zip(self.start, self.steps, self.size, strict=True)
        rows, columns = ([first + step * n for n in range(count)] for first, step, count in axes)
        try:
            return np.ascontiguousarray(x[:, rows][:, :, columns][..., list(self.channels)])
        except IndexError:
            raise ModuleError(
                f"an image of shape {list(x.shape)} has no part {self}; compile it again"
            ) from None


@frozen
class Image:
    """One image of a batch: that of number ``place``."""

    place: int

    def run(self, x: Array) -> Array:
        """T[N, ...] to T[1, ...]."""
        if not 0 <= self.place < len(x):
            raise ModuleError(f"a batch of {len(x)} has no image {self.place}; compile it again")
        return x[self.place : self.place + 1]


@frozen
class Halves:
    """Rows of an image from row ``-above`` down, and beside them, as more channels, rows from
    ``last`` up; ``fill`` where the image has none.
    """

    rows: int
    above: int
    last: int
    fill: int

    def __post_init__(self) -> None:
        places = max(self.rows, abs(self.above), abs(self.last))
        if not 0 < self.rows <= places < MOST_ROWS or not -128 <= self.fill <= 127:
            raise ModuleError(f"{self}; required 1 to {MOST_ROWS - 1} rows, filled with int8")

    def run(self, x: Array) -> Array:
        """T[1, H, W, C] to T[1, ``rows``, W, 2 * C]."""
        if x.ndim != 4 or len(x) != 1:
            raise ModuleError(f"an image of shape {list(x.shape)} has no {self}; compile it again")
        places = np.arange(self.rows) - self.above, self.last - np.arange(self.rows)
        halves = np.full((1, self.rows, x.shape[2], 2, x.shape[3]), self.fill, x.dtype)
        for half, rows in enumerate(places):
            (there,) = np.nonzero((rows >= 0) & (rows < x.shape[1]))
            halves[0, there, :, half] = x[0, rows[there]]
        return halves.reshape(1, self.rows, x.shape[2], -1)


HostStep = (
    Quantize | Dequantize | Softmax | Shift128 | Reshape | Transpose | Select | Image | Halves
)


def _require_quantization(scale: float, zero_point: int) -> None:
    if not 0 < scale < float(np.finfo(np.float32).max) or not -(2**31) <= zero_point < 2**31:
        raise ModuleError(f"scale {scale}, zero point {zero_point}; required scale > 0, int32")
