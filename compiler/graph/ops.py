"""The operators of the graph IR: attributes, and what each means.

Activations are int8, NHWC with N = 1; accumulators int32.  ``interpreter`` gives the meaning of
each.
"""

from dataclasses import dataclass
from math import isfinite
from typing import get_args

from ..errors import GraphError
from .operators.movement import Reshape, Transpose
from .types import TensorType

__all__ = [
    "OPERATORS",
    "Add",
    "AveragePool2d",
    "Conv2d",
    "ConvTranspose2d",
    "Dense",
    "Dequantize",
    "Lookup",
    "MaxPool2d",
    "Operator",
    "Pad",
    "Pads",
    "Pair",
    "Quantize",
    "Requantize",
    "Reshape",
    "Shift128",
    "Softmax",
    "TensorType",
    "Transpose",
    "Upsample2d",
]

Pair = tuple[int, int]
"""Height, width."""
Pads = tuple[int, int, int, int]
"""Top, left, bottom, right."""


@dataclass(frozen=True, slots=True)
class Conv2d:
    """``sum((x - zero_point) * (w - weight_zero_point)) + bias``.

    x: int8[1, H, W, C], w: int8[O, KH, KW, C / groups], bias: int32[O] to int32[1, OH, OW, O].
    Padding reads as ``zero_point``.  Output channels are in ``groups`` too, each of which reads its
    part of the channels.  dilations: rows and columns from tap to tap.
    """

    strides: Pair
    pads: Pads
    groups: int
    zero_point: int
    weight_zero_point: int = 0
    dilations: Pair = (1, 1)

    def __post_init__(self) -> None:
        _check(self, min(self.strides) >= 1, "strides of at least 1")
        _check(self, min(self.dilations) >= 1, "dilations of at least 1")
        _check(self, min(self.pads) >= 0, "pads of at least 0")
        _check(self, self.groups >= 1, "groups of at least 1")
        _check(self, _is_int8(self.zero_point), "a zero point in -128..127")
        _check(self, _is_int8(self.weight_zero_point), "a weight zero point in -128..127")

    def span(self, kernel: Pair) -> Pair:
        """Rows and columns of a window of ``kernel`` taps."""
        down, across = self.dilations
        return (kernel[0] - 1) * down + 1, (kernel[1] - 1) * across + 1


@dataclass(frozen=True, slots=True)
class ConvTranspose2d:
    """Each ``x - zero_point`` times the kernel, added up ``strides`` apart, and the bias.

    ``y[r, c] = bias + sum((x[i, j] - zero_point) * (w[r + top - i * strides[0], ...] - ...))``.
    x: int8[1, H, W, C], w: int8[O, KH, KW, C / groups], bias: int32[O] to int32[1, OH, OW, O], OH =
    (H - 1) * strides[0] + KH - top - bottom + added[0].
    """

    strides: Pair
    pads: Pads
    added: Pair
    groups: int
    zero_point: int
    weight_zero_point: int = 0

    def __post_init__(self) -> None:
        _check(self, min(self.strides) >= 1, "strides of at least 1")
        _check(self, min(self.pads) >= 0, "pads of at least 0")
        _check(self, min(self.added) >= 0, "added rows and columns of at least 0")
        _check(self, self.groups >= 1, "groups of at least 1")
        _check(self, _is_int8(self.zero_point), "a zero point in -128..127")
        _check(self, _is_int8(self.weight_zero_point), "a weight zero point in -128..127")


@dataclass(frozen=True, slots=True)
class Dense:
    """``(x - zero_point) @ (w - weight_zero_point).T + bias``.

    x: int8[N, K], w: int8[O, K], bias: int32[O] to int32[N, O].
    """

    zero_point: int
    weight_zero_point: int = 0

    def __post_init__(self) -> None:
        _check(self, _is_int8(self.zero_point), "a zero point in -128..127")
        _check(self, _is_int8(self.weight_zero_point), "a weight zero point in -128..127")


@dataclass(frozen=True, slots=True)
class Requantize:
    """``clip(rint(float32(x) * scale) + zero_point, low, high)``, the product in float32.

    x: int32[..., O], scale: float32[O] to int8.
    Source: ONNX Runtime's QLinearConv and QLinearMatMul on x86-64.
    """

    zero_point: int
    low: int
    high: int

    def __post_init__(self) -> None:
        _check(self, _is_int8(self.zero_point), "a zero point in -128..127")
        _check(self, -128 <= self.low <= self.high <= 127, "-128 <= low <= high <= 127")


@dataclass(frozen=True, slots=True)
class Add:
    """``clip(rint(fma(a, ra, fma(b, rb, offset))), low, high)`` in float32, ``fma`` rounding once.

    ``offset = zero_point - fma(za, ra, rb * zb)``.  a, b: int8 of one shape.  unsigned: the formula
    is evaluated on the uint8 tensors of the model, whose values and zero points are 128 more.
    Source: ONNX Runtime's QLinearAdd on x86-64 with AVX2; equal on all 65,536 pairs for each of 152
    sets of random parameters.
    """

    a_ratio: float
    b_ratio: float
    a_zero_point: int
    b_zero_point: int
    zero_point: int
    low: int
    high: int
    unsigned: bool = False

    def __post_init__(self) -> None:
        for ratio in (self.a_ratio, self.b_ratio):
            _check(self, isfinite(ratio) and ratio > 0, "finite ratios above 0")
        for zero_point in (self.a_zero_point, self.b_zero_point, self.zero_point):
            _check(self, _is_int8(zero_point), "zero points in -128..127")
        _check(self, -128 <= self.low <= self.high <= 127, "-128 <= low <= high <= 127")


@dataclass(frozen=True, slots=True)
class MaxPool2d:
    """Largest of each window; padding never wins.  int8[1, H, W, C] to int8."""

    kernel: Pair
    strides: Pair
    pads: Pads

    def __post_init__(self) -> None:
        _check(self, min(self.kernel) >= 1, "a kernel of at least 1x1")
        _check(self, min(self.strides) >= 1, "strides of at least 1")
        _check(self, min(self.pads) >= 0, "pads of at least 0")


@dataclass(frozen=True, slots=True)
class Upsample2d:
    """Each pixel ``factors`` times, down and across: int8[1, H, W, C] to int8."""

    factors: Pair

    def __post_init__(self) -> None:
        _check(self, min(self.factors) >= 1, "factors of at least 1")


@dataclass(frozen=True, slots=True)
class AveragePool2d:
    """``clip(rint(float32(sum(x - x_zero_point)) * scale) + zero_point)``, without padding.

    ``scale`` is float32(input scale / (output scale * window size)).  int8[1, H, W, C] to int8.
    ``x_zero_point`` may be any difference of two zero points.  start: row and column of the first
    window.  size: rows and columns of the result; as many as fit, if none are given.
    """

    kernel: Pair
    strides: Pair
    x_zero_point: int
    zero_point: int
    scale: float
    start: Pair = (0, 0)
    size: Pair | None = None

    def __post_init__(self) -> None:
        _check(self, min(self.kernel) >= 1, "a kernel of at least 1x1")
        _check(self, min(self.start) >= 0, "a first window at 0 or behind")
        _check(self, self.size is None or min(self.size) >= 1, "a size of at least 1x1")
        _check(self, min(self.strides) >= 1, "strides of at least 1")
        _check(self, -255 <= self.x_zero_point <= 255, "an input zero point in -255..255")
        _check(self, _is_int8(self.zero_point), "a zero point in -128..127")
        _check(self, isfinite(self.scale) and self.scale > 0, "a finite scale above 0")


@dataclass(frozen=True, slots=True)
class Lookup:
    """``table[x + 128]``: x int8, table int8[256] to int8."""


@dataclass(frozen=True, slots=True)
class Pad:
    """A border of ``value``: int8[1, H, W, C] to int8[1, top + H + bottom, left + W + right, C]."""

    pads: Pads
    value: int

    def __post_init__(self) -> None:
        _check(self, min(self.pads) >= 0, "pads of at least 0")
        _check(self, _is_int8(self.value), "a value in -128..127")


@dataclass(frozen=True, slots=True)
class Softmax:
    """Softmax over the last dimension, int8 to int8, by a table of float32 exponentials.

    ``e[i] = float32(exp((i - 255 + shift) * x_scale))``, ``v = e[x - max(x) + 255]``,
    ``clip(rint(v * floor(1 / scale) / sum(v)) + zero_point)``, where, for rows of ``n`` values,
    ``shift = max(0, log(largest float32 / n) - 5) / x_scale`` keeps the sum finite.
    Source: ONNX Runtime's QLinearSoftmax.
    """

    x_scale: float
    x_zero_point: int
    scale: float
    zero_point: int

    def __post_init__(self) -> None:
        for scale in (self.x_scale, self.scale):
            _check(self, isfinite(scale) and scale > 0, "finite scales above 0")


@dataclass(frozen=True, slots=True)
class Quantize:
    """``clip(rint(x / scale) + zero_point, -128, 127)``: float32 to int8."""

    scale: float
    zero_point: int

    def __post_init__(self) -> None:
        _check(self, isfinite(self.scale) and self.scale > 0, "a finite scale above 0")
        _check(self, _is_int8(self.zero_point), "a zero point in -128..127")


@dataclass(frozen=True, slots=True)
class Dequantize:
    """``(x - zero_point) * scale``: int8 to float32."""

    scale: float
    zero_point: int

    def __post_init__(self) -> None:
        _check(self, isfinite(self.scale) and self.scale > 0, "a finite scale above 0")
        _check(self, _is_int8(self.zero_point), "a zero point in -128..127")


@dataclass(frozen=True, slots=True)
class Shift128:
    """uint8 to int8 by subtracting 128, or int8 to uint8 by adding it."""

    to: str

    def __post_init__(self) -> None:
        _check(self, self.to in ("int8", "uint8"), "int8 or uint8")


Operator = (
    Conv2d
    | ConvTranspose2d
    | Dense
    | Requantize
    | Add
    | MaxPool2d
    | Upsample2d
    | AveragePool2d
    | Lookup
    | Pad
    | Reshape
    | Transpose
    | Softmax
    | Quantize
    | Dequantize
    | Shift128
)

OPERATORS: dict[str, type[Operator]] = {kind.__name__: kind for kind in get_args(Operator)}
"""Every operator, by name."""


def _is_int8(value: int) -> bool:
    return -128 <= value <= 127


def _check(operator: Operator, holds: bool, required: str) -> None:
    if not holds:
        raise GraphError(f"{operator}: required {required}")
