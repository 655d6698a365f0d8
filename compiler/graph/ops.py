"""The operators of the graph IR: attributes, type rules, what each means.

Activations are int8, NHWC with N = 1; accumulators int32.  ``interpreter`` gives the NumPy meaning of each.
"""

from dataclasses import dataclass

from ..errors import GraphError

__all__ = [
    "Add",
    "AveragePool2d",
    "Conv2d",
    "Dense",
    "Dequantize",
    "Lookup",
    "MaxPool2d",
    "Operator",
    "Quantize",
    "Requantize",
    "Reshape",
    "Shift128",
    "Softmax",
    "TensorType",
    "Transpose",
    "output_type",
]

Pair = tuple[int, int]
Pads = tuple[int, int, int, int]
"""Top, left, bottom, right."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape and element type (a NumPy name: int8, uint8, int32, float32)."""

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Conv2d:
    """``sum((x - zero_point) * w) + bias``: x int8[1, H, W, C], w int8[O, KH, KW, C / groups], bias int32[O]
    to int32[1, OH, OW, O].  Padding reads as ``zero_point``.  ``groups`` is 1 or C (depthwise)."""

    strides: Pair
    pads: Pads
    groups: int
    zero_point: int


@dataclass(frozen=True, slots=True)
class Dense:
    """``(x - zero_point) @ w.T + bias``: x int8[N, K], w int8[O, K], bias int32[O] to int32[N, O]."""

    zero_point: int


@dataclass(frozen=True, slots=True)
class Requantize:
    """``clip(rint(float32(x) * scale) + zero_point, low, high)``: x int32[..., O], scale float32[O] to int8."""

    zero_point: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Add:
    """``clip(rint((zero_point - (ra * za + rb * zb)) + a * ra + b * rb), low, high)`` in float32, left to right.

    a, b: int8 of one shape.  Source: ONNX Runtime's QLinearAdd on x86-64.
    """

    a_ratio: float
    b_ratio: float
    a_zero_point: int
    b_zero_point: int
    zero_point: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class MaxPool2d:
    """Largest of each window; padding never wins.  int8[1, H, W, C] to int8."""

    kernel: Pair
    strides: Pair
    pads: Pads


@dataclass(frozen=True, slots=True)
class AveragePool2d:
    """``clip(rint(float32(sum(x - x_zero_point)) * scale) + zero_point)``, without padding.

    ``scale`` is float32(input scale / (output scale * window size)).  int8[1, H, W, C] to int8.
    """

    kernel: Pair
    strides: Pair
    x_zero_point: int
    zero_point: int
    scale: float


@dataclass(frozen=True, slots=True)
class Lookup:
    """``table[x + 128]``: x int8, table int8[256] to int8."""


@dataclass(frozen=True, slots=True)
class Reshape:
    """Same elements, another shape."""

    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Transpose:
    """Output dimension ``i`` is input dimension ``permutation[i]``."""

    permutation: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Softmax:
    """Dequantise, softmax over the last dimension in float32, quantise.  int8 to int8."""

    x_scale: float
    x_zero_point: int
    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True)
class Quantize:
    """``clip(rint(x / scale) + zero_point, -128, 127)``: float32 to int8."""

    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True)
class Dequantize:
    """``(x - zero_point) * scale``: int8 to float32."""

    scale: float
    zero_point: int


@dataclass(frozen=True, slots=True)
class Shift128:
    """uint8 to int8 by subtracting 128, or int8 to uint8 by adding it."""

    to: str


Operator = (
    Conv2d
    | Dense
    | Requantize
    | Add
    | MaxPool2d
    | AveragePool2d
    | Lookup
    | Reshape
    | Transpose
    | Softmax
    | Quantize
    | Dequantize
    | Shift128
)


def output_type(operator: Operator, inputs: tuple[TensorType, ...]) -> TensorType:
    """The type of the operator's result.

    Raises GraphError when the inputs do not fit it.
    """
    x = inputs[0]
    match operator:
        case Conv2d(strides=strides, pads=pads, groups=groups):
            weights = inputs[1]
            _require(operator, len(x.shape) == 4 and x.dtype == "int8", x, "int8[1, H, W, C]")
            out_channels, kh, kw, per_group = weights.shape
            _require(operator, per_group * groups == x.shape[3], weights, f"C = {x.shape[3]}")
            height, width = _windows(x.shape, (kh, kw), strides, pads)
            return TensorType((1, height, width, out_channels), "int32")
        case Dense():
            _require(operator, inputs[1].shape[1] == x.shape[-1], inputs[1], f"K = {x.shape[-1]}")
            return TensorType((*x.shape[:-1], inputs[1].shape[0]), "int32")
        case Requantize():
            _require(operator, x.dtype == "int32", x, "int32")
            return TensorType(x.shape, "int8")
        case Add():
            _require(operator, inputs[1] == x, inputs[1], str(x))
            return x
        case MaxPool2d(kernel=kernel, strides=strides, pads=pads):
            height, width = _windows(x.shape, kernel, strides, pads)
            return TensorType((1, height, width, x.shape[3]), "int8")
        case AveragePool2d(kernel=kernel, strides=strides):
            height, width = _windows(x.shape, kernel, strides, (0, 0, 0, 0))
            return TensorType((1, height, width, x.shape[3]), "int8")
        case Lookup() | Softmax():
            return x
        case Reshape(shape=shape):
            elements, wanted = 1, 1
            for size in x.shape:
                elements *= size
            for size in shape:
                wanted *= size
            _require(operator, elements == wanted, x, f"{wanted} elements")
            return TensorType(shape, x.dtype)
        case Transpose(permutation=permutation):
            return TensorType(tuple(x.shape[axis] for axis in permutation), x.dtype)
        case Quantize():
            _require(operator, x.dtype == "float32", x, "float32")
            return TensorType(x.shape, "int8")
        case Dequantize():
            return TensorType(x.shape, "float32")
        case Shift128(to=to):
            return TensorType(x.shape, to)


def _require(operator: Operator, holds: bool, found: TensorType, required: str) -> None:
    if not holds:
        raise GraphError(f"{type(operator).__name__}: found {found}, required {required}")


def _windows(shape: tuple[int, ...], kernel: Pair, strides: Pair, pads: Pads) -> Pair:
    height = (shape[1] + pads[0] + pads[2] - kernel[0]) // strides[0] + 1
    width = (shape[2] + pads[1] + pads[3] - kernel[1]) // strides[1] + 1
    if height < 1 or width < 1:
        raise GraphError(f"a {kernel[0]}x{kernel[1]} window does not fit {shape[1]}x{shape[2]}")
    return height, width
