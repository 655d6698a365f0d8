"""The type of each operator's result, and what types it takes."""

from typing import assert_never

from ..dtypes import DType
from ..errors import GraphError
from .operators.protocol import TensorOperator
from .ops import (
    Add,
    AveragePool2d,
    Conv2d,
    ConvTranspose2d,
    Dense,
    Dequantize,
    Lookup,
    MaxPool2d,
    Operator,
    Pad,
    Pads,
    Pair,
    Quantize,
    Requantize,
    Reshape,
    Shift128,
    Softmax,
    Transpose,
    Upsample2d,
)
from .types import TensorType

__all__ = ["output_type", "result_types"]

ARITY = {Conv2d: 3, ConvTranspose2d: 3, Dense: 3, Requantize: 2, Add: 2, Lookup: 2}
"""Number of inputs of the operators that have more than one."""


def output_type(operator: Operator, inputs: tuple[TensorType, ...]) -> TensorType:
    """The type of the operator's result.

    Raises GraphError when the inputs do not fit it.
    """
    arity = ARITY.get(type(operator), 1)
    if len(inputs) != arity:
        raise GraphError(f"{type(operator).__name__}: {len(inputs)} inputs; required {arity}")
    x = inputs[0]
    match operator:
        case Conv2d():
            return _conv2d_type(operator, x, inputs[1], inputs[2])
        case ConvTranspose2d():
            return _transposed_type(operator, x, inputs[1], inputs[2])
        case Dense():
            return _dense_type(operator, x, inputs[1], inputs[2])
        case Requantize():
            _require(operator, x.dtype == DType.INT32 and bool(x.shape), x, "int32[..., O]")
            _exactly(operator, inputs[1], TensorType(x.shape[-1:], DType.FLOAT32))
            return TensorType(x.shape, DType.INT8)
        case Add():
            _require(operator, x.dtype == DType.INT8, x, "int8")
            _exactly(operator, inputs[1], x)
            return x
        case MaxPool2d(kernel=kernel, strides=strides, pads=pads):
            return _pool_type(operator, x, kernel, strides, pads)
        case AveragePool2d(kernel=kernel, strides=strides, start=(row, column), size=size):
            _image(operator, x)
            shape = (1, x.shape[1] - row, x.shape[2] - column, x.shape[3])
            most = _windows(shape, kernel, strides, (0, 0, 0, 0))
            height, width = size or most
            _require(operator, height <= most[0] and width <= most[1], x, "room for all windows")
            return TensorType((1, height, width, x.shape[3]), DType.INT8)
        case Lookup():
            _require(operator, x.dtype == DType.INT8, x, "int8")
            _exactly(operator, inputs[1], TensorType((256,), DType.INT8))
            return x
        case Upsample2d(factors=(down, across)):
            _image(operator, x)
            _, height, width, channels = x.shape
            return TensorType((1, height * down, width * across, channels), DType.INT8)
        case Pad(pads=(top, left, bottom, right)):
            _image(operator, x)
            _, height, width, channels = x.shape
            shape = (1, top + height + bottom, left + width + right, channels)
            return TensorType(shape, DType.INT8)
        case Softmax():
            _require(operator, x.dtype == DType.INT8 and bool(x.shape), x, "int8[..., C]")
            return x
        case Reshape() | Transpose():
            return operator.result(inputs)[0]
        case Quantize():
            _require(operator, x.dtype == DType.FLOAT32, x, "float32")
            return TensorType(x.shape, DType.INT8)
        case Dequantize():
            _require(operator, x.dtype == DType.INT8, x, "int8")
            return TensorType(x.shape, DType.FLOAT32)
        case Shift128(to=to):
            wanted = DType.UINT8 if to == DType.INT8 else DType.INT8
            _require(operator, x.dtype == wanted, x, wanted)
            return TensorType(x.shape, to)
        case _:
            assert_never(operator)


def result_types(
    operator: Operator | TensorOperator, inputs: tuple[TensorType, ...]
) -> tuple[TensorType, ...]:
    """The types of the operator's results.

    Raises GraphError when the inputs do not fit it.
    """
    if isinstance(operator, TensorOperator):
        return operator.result(inputs)
    return (output_type(operator, inputs),)


def _conv2d_type(
    operator: Conv2d, x: TensorType, weights: TensorType, bias: TensorType
) -> TensorType:
    kernel = _kernel(operator, x, weights, bias)
    height, width = _windows(x.shape, operator.span(kernel), operator.strides, operator.pads)
    return TensorType((1, height, width, weights.shape[0]), DType.INT32)


def _transposed_type(
    operator: ConvTranspose2d, x: TensorType, weights: TensorType, bias: TensorType
) -> TensorType:
    kernel = _kernel(operator, x, weights, bias)
    height, width = (
        (size - 1) * stride + taps - before - after + added
        for size, stride, taps, before, after, added in zip(
            x.shape[1:3],
            operator.strides,
            kernel,
            operator.pads[:2],
            operator.pads[2:],
            operator.added,
            strict=True,
        )
    )
    _require(operator, min(height, width) >= 1, x, "at least one row and column of result")
    return TensorType((1, height, width, weights.shape[0]), DType.INT32)


def _kernel(
    operator: Conv2d | ConvTranspose2d, x: TensorType, weights: TensorType, bias: TensorType
) -> Pair:
    """Height and width of the weights, whose type must fit."""
    _image(operator, x)
    fits = weights.dtype == DType.INT8 and len(weights.shape) == 4
    _require(operator, fits, weights, "int8[O, KH, KW, C / groups]")
    out_channels, kernel_height, kernel_width, per_group = weights.shape
    channels = x.shape[3]
    _require(operator, per_group * operator.groups == channels, weights, f"C = {channels}")
    equal = out_channels % operator.groups == 0
    _require(operator, equal, weights, f"as many outputs for each of {operator.groups} groups")
    _exactly(operator, bias, TensorType((out_channels,), DType.INT32))
    return kernel_height, kernel_width


def _dense_type(
    operator: Dense, x: TensorType, weights: TensorType, bias: TensorType
) -> TensorType:
    _require(operator, x.dtype == DType.INT8 and bool(x.shape), x, "int8[..., K]")
    fits = weights.dtype == DType.INT8 and len(weights.shape) == 2
    _require(operator, fits, weights, "int8[O, K]")
    outputs, size = weights.shape
    _require(operator, size == x.shape[-1], weights, f"K = {x.shape[-1]}")
    _exactly(operator, bias, TensorType((outputs,), DType.INT32))
    return TensorType((*x.shape[:-1], outputs), DType.INT32)


def _pool_type(
    operator: Operator, x: TensorType, kernel: Pair, strides: Pair, pads: Pads
) -> TensorType:
    _image(operator, x)
    height, width = _windows(x.shape, kernel, strides, pads)
    return TensorType((1, height, width, x.shape[3]), DType.INT8)


def _require(operator: Operator, holds: bool, found: TensorType, required: str) -> None:
    if not holds:
        raise GraphError(f"{type(operator).__name__}: found {found}, required {required}")


def _exactly(operator: Operator, found: TensorType, required: TensorType) -> None:
    _require(operator, found == required, found, str(required))


def _image(operator: Operator, x: TensorType) -> None:
    fits = len(x.shape) == 4 and x.shape[0] == 1 and x.dtype == DType.INT8
    _require(operator, fits, x, "int8[1, H, W, C]")


def _windows(shape: tuple[int, ...], kernel: Pair, strides: Pair, pads: Pads) -> Pair:
    height = (shape[1] + pads[0] + pads[2] - kernel[0]) // strides[0] + 1
    width = (shape[2] + pads[1] + pads[3] - kernel[1]) // strides[1] + 1
    if height < 1 or width < 1:
        raise GraphError(f"a {kernel[0]}x{kernel[1]} window does not fit {shape[1]}x{shape[2]}")
    return height, width
