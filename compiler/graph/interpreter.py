"""The NumPy meaning of every operator; the oracle of all backends, and the ``cpu`` target."""

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from dovetail.runtime import host

from ..errors import GraphError
from .ir import Graph
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

__all__ = ["evaluate", "evaluate_all", "run"]

Array = NDArray[Any]
F32 = np.float32


def run(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Evaluate the graph on ``inputs``; return every tensor by name, outputs among them.

    Raises GraphError when an input is missing, unknown, or of another type.
    """
    _check_inputs(graph, inputs)
    values: dict[str, Array] = {**graph.constants, **inputs}
    for node in graph.nodes:
        results = evaluate_all(node.operator, [values[name] for name in node.inputs])
        values.update(zip(node.outputs, results, strict=True))
    return values


def _check_inputs(graph: Graph, inputs: Mapping[str, Array]) -> None:
    if set(inputs) != set(graph.inputs):
        raise GraphError(f"inputs {sorted(inputs)}; required {sorted(graph.inputs)}")
    for name, array in inputs.items():
        wanted = graph.types[name]
        if array.shape != wanted.shape or array.dtype != wanted.dtype.numpy:
            raise GraphError(
                f"input {name!r} is {array.dtype}{list(array.shape)}; required {wanted}"
            )


def evaluate_all(operator: Operator | TensorOperator, inputs: list[Array]) -> tuple[Array, ...]:
    """The results of one operator."""
    if isinstance(operator, TensorOperator):
        return operator.evaluate(inputs)
    return (evaluate(operator, inputs),)


def evaluate(operator: Operator, inputs: list[Array]) -> Array:
    """The result of one operator."""
    x = inputs[0]
    match operator:
        case Conv2d():
            return _conv2d(operator, *inputs)
        case ConvTranspose2d():
            return _conv_transpose2d(operator, *inputs)
        case Dense(zero_point=zero_point, weight_zero_point=weight_zero_point):
            shifted = x.astype(np.float64) - zero_point
            weights = inputs[1].astype(np.float64) - weight_zero_point
            return (shifted @ weights.T + inputs[2]).astype(np.int32)
        case Requantize(zero_point=zero_point, low=low, high=high):
            rounded = np.rint(x.astype(F32) * inputs[1]).astype(np.float64)
            return np.clip(rounded + zero_point, low, high).astype(np.int8)
        case Add():
            return _add(operator, x, inputs[1])
        case MaxPool2d(kernel=kernel, strides=strides, pads=pads):
            windows = _windows(x, kernel, strides, pads, -128)
            return windows.max(axis=(4, 5)).astype(np.int8)
        case Upsample2d(factors=(down, across)):
            return x.repeat(down, axis=1).repeat(across, axis=2)
        case AveragePool2d():
            row, column = operator.start
            x = x[:, row:, column:].astype(np.int64)
            windows = _windows(x, operator.kernel, operator.strides, (0, 0, 0, 0), 0)
            height, width = operator.size or windows.shape[1:3]
            windows = windows[:, :height, :width]
            total = (windows - operator.x_zero_point).sum(axis=(4, 5)).astype(F32)
            rounded = np.rint(total * F32(operator.scale)) + operator.zero_point
            return np.clip(rounded, -128, 127).astype(np.int8)
        case Lookup():
            return inputs[1][x.astype(np.int16) + 128]
        case Pad(pads=(top, left, bottom, right), value=value):
            return np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=value)
        case Reshape() | Transpose():
            return operator.evaluate(inputs)[0]
        case Softmax():
            return host.softmax(
                x, operator.x_scale, operator.x_zero_point, operator.scale, operator.zero_point
            )
        case Quantize(scale=scale, zero_point=zero_point):
            return host.quantize(x, scale, zero_point)
        case Dequantize(scale=scale, zero_point=zero_point):
            return host.dequantize(x, scale, zero_point)
        case Shift128(to=to):
            return host.shift128(x, to)
        case _:
            assert_never(operator)


def _windows(x: Array, kernel: Pair, strides: Pair, pads: Pads, fill: int) -> Array:
    """Every window: [1, OH, OW, C, KH, KW]."""
    top, left, bottom, right = pads
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(1, 2))
    return view[:, :: strides[0], :: strides[1]]


def _conv2d(operator: Conv2d, x: Array, weights: Array, bias: Array) -> Array:
    """Sums in float64, which holds every int32 exactly."""
    span = operator.span((weights.shape[1], weights.shape[2]))
    shifted = x.astype(np.float64) - operator.zero_point
    windows = _windows(shifted, span, operator.strides, operator.pads, 0)
    windows = windows[..., :: operator.dilations[0], :: operator.dilations[1]]
    factors = weights.astype(np.float64) - operator.weight_zero_point
    if factors.shape[3] == 1 and operator.groups == len(factors):
        total = np.einsum("nhwcyx,cyx->nhwc", windows, factors[..., 0])
        return (total + bias).astype(np.int32)
    parts = zip(
        np.split(windows, operator.groups, 3), np.split(factors, operator.groups), strict=True
    )
    sums = [np.tensordot(part, kernel, axes=((3, 4, 5), (3, 1, 2))) for part, kernel in parts]
    return (np.concatenate(sums, axis=3) + bias).astype(np.int32)


def _conv_transpose2d(operator: ConvTranspose2d, x: Array, weights: Array, bias: Array) -> Array:
    """A convolution by the turned kernel of ``x`` with its rows and columns apart."""
    _, height, width, channels = x.shape
    (down, across), (kernel_h, kernel_w) = operator.strides, weights.shape[1:3]
    top, left, bottom, right = operator.pads
    size = (
        (height - 1) * down + kernel_h - top - bottom + operator.added[0],
        (width - 1) * across + kernel_w - left - right + operator.added[1],
    )
    shape = (1, (height - 1) * down + 1, (width - 1) * across + 1, channels)
    apart = np.full(shape, operator.zero_point, x.dtype)
    apart[:, ::down, ::across] = x
    down, across = operator.added
    pads = (kernel_h - 1, kernel_w - 1, kernel_h - 1 + down, kernel_w - 1 + across)
    plain = Conv2d((1, 1), pads, operator.groups, operator.zero_point, operator.weight_zero_point)
    result = _conv2d(plain, apart, weights[:, ::-1, ::-1], bias)
    return result[:, top : top + size[0], left : left + size[1]]


def _add(operator: Add, a: Array, b: Array) -> Array:
    """Fused multiply-adds; float64 holds each product of int8 and float32 exactly."""
    ra, rb = np.float64(F32(operator.a_ratio)), np.float64(F32(operator.b_ratio))
    shift = 128 if operator.unsigned else 0
    product = np.float64(F32(rb * (operator.b_zero_point + shift)))
    offset = F32(operator.zero_point + shift) - F32(ra * (operator.a_zero_point + shift) + product)
    inner = ((b.astype(np.float64) + shift) * rb + np.float64(offset)).astype(F32)
    total = ((a.astype(np.float64) + shift) * ra + inner).astype(F32)
    return np.clip(np.rint(total) - shift, operator.low, operator.high).astype(np.int8)
