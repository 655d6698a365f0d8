"""The NumPy meaning of every operator; the oracle of all backends, and the ``cpu`` target."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dovetail.runtime import host

from .ir import Array, Graph
from .ops import (
    Add,
    AveragePool2d,
    Conv2d,
    Dense,
    Dequantize,
    Lookup,
    MaxPool2d,
    Operator,
    Pads,
    Pair,
    Quantize,
    Requantize,
    Reshape,
    Shift128,
    Softmax,
    Transpose,
)

__all__ = ["evaluate", "run"]

F32 = np.float32


def run(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Evaluate the graph on ``inputs``; return every tensor by name, outputs among them."""
    values: dict[str, Array] = {**graph.constants, **inputs}
    for node in graph.nodes:
        values[node.output] = evaluate(node.operator, [values[name] for name in node.inputs])
    return values


def evaluate(operator: Operator, inputs: list[Array]) -> Array:
    """The result of one operator."""
    x = inputs[0]
    match operator:
        case Conv2d():
            return _conv2d(operator, *inputs)
        case Dense(zero_point=zero_point):
            shifted = x.astype(np.int64) - zero_point
            return (shifted @ inputs[1].astype(np.int64).T + inputs[2]).astype(np.int32)
        case Requantize(zero_point=zero_point, low=low, high=high):
            rounded = np.rint(x.astype(F32) * inputs[1]).astype(np.float64)
            return np.clip(rounded + zero_point, low, high).astype(np.int8)
        case Add():
            return _add(operator, x, inputs[1])
        case MaxPool2d(kernel=kernel, strides=strides, pads=pads):
            windows = _windows(x, kernel, strides, pads, -128)
            return windows.max(axis=(4, 5)).astype(np.int8)
        case AveragePool2d():
            windows = _windows(x.astype(np.int64), operator.kernel, operator.strides, (0,) * 4, 0)
            total = (windows - operator.x_zero_point).sum(axis=(4, 5)).astype(F32)
            rounded = np.rint(total * F32(operator.scale)) + operator.zero_point
            return np.clip(rounded, -128, 127).astype(np.int8)
        case Lookup():
            return inputs[1][x.astype(np.int16) + 128]
        case Reshape(shape=shape):
            return x.reshape(shape)
        case Transpose(permutation=permutation):
            return x.transpose(permutation)
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


def _windows(
    x: NDArray[np.generic], kernel: Pair, strides: Pair, pads: Pads, fill: int
) -> NDArray[np.generic]:
    """Every window: [OH, OW, C, KH, KW] with a leading 1."""
    top, left, bottom, right = pads
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(1, 2))
    return view[:, :: strides[0], :: strides[1]]


def _conv2d(operator: Conv2d, x: Array, weights: Array, bias: Array) -> Array:
    kernel = (weights.shape[1], weights.shape[2])
    shifted = x.astype(np.float64) - operator.zero_point
    windows = _windows(shifted, kernel, operator.strides, operator.pads, 0)
    if operator.groups == 1:
        total = np.tensordot(windows, weights.astype(np.float64), axes=((3, 4, 5), (3, 1, 2)))
    else:
        taps = weights[:, :, :, 0].astype(np.float64)
        total = (windows * taps[None, None, None]).sum(axis=(4, 5))
    return (total + bias).astype(np.int64).astype(np.int32)


def _add(operator: Add, a: Array, b: Array) -> Array:
    """In float32, from left to right."""
    ra, rb = F32(operator.a_ratio), F32(operator.b_ratio)
    za, zb = F32(operator.a_zero_point), F32(operator.b_zero_point)
    offset = F32(operator.zero_point) - (ra * za + rb * zb)
    total = (offset + a.astype(F32) * ra) + b.astype(F32) * rb
    return np.clip(np.rint(total), operator.low, operator.high).astype(np.int8)
