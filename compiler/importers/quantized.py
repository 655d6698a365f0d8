"""Quantised values during import: what stands for a float tensor between two quantisations.

A QDQ model computes on float tensors that were just dequantised and will be quantised at once.  While the
importer walks the model each float tensor is one of the symbols below; QuantizeLinear turns it into an integer
operator of the graph IR.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import UnsupportedOperatorError
from ..graph.ir import Array, GraphBuilder
from ..graph.ops import (
    Add,
    AveragePool2d,
    Lookup,
    Pair,
    Requantize,
    Reshape,
    Softmax,
    Transpose,
)

__all__ = [
    "NCHW_TO_NHWC",
    "Accumulated",
    "Averaged",
    "Function",
    "Integer",
    "Real",
    "Softmaxed",
    "Sum",
    "Symbol",
    "quantize",
    "to_model_order",
    "to_nhwc",
    "weights_of",
]

F32 = np.float32
NCHW_TO_NHWC = (0, 2, 3, 1)


@dataclass(frozen=True, slots=True)
class Integer:
    """A tensor of the graph, int8.  ``permutation``: dimension ``i`` of the stored tensor is dimension
    ``permutation[i]`` of the model's."""

    name: str
    permutation: tuple[int, ...]
    unsigned: bool = False
    """The model's tensor is uint8: 128 more than what is stored."""


@dataclass(frozen=True, slots=True)
class Real:
    """``(tensor - zero_point) * scale``, per tensor."""

    tensor: Integer
    scale: np.float32
    zero_point: int


@dataclass(frozen=True, slots=True)
class RealConstant:
    """``(values - zero_points) * scales`` along ``axis``: weights and biases."""

    values: Array
    scales: NDArray[np.float32]
    zero_points: NDArray[np.int64]
    axis: int


@dataclass(frozen=True, slots=True)
class Accumulated:
    """int32 tensor times ``scales`` (one, or one a channel), then a clip to ``low..high`` in real units."""

    tensor: Integer
    scales: NDArray[np.float64]
    x_scale: np.float32
    w_scales: NDArray[np.float32]
    low: float = -np.inf
    high: float = np.inf


@dataclass(frozen=True, slots=True)
class Sum:
    """Sum of two dequantised tensors, then a clip."""

    a: Real
    b: Real
    low: float = -np.inf
    high: float = np.inf


@dataclass(frozen=True, slots=True)
class Averaged:
    """Average over windows of a dequantised tensor."""

    real: Real
    kernel: Pair
    strides: Pair


@dataclass(frozen=True, slots=True)
class Softmaxed:
    """Softmax over the last dimension of a dequantised tensor."""

    real: Real


@dataclass(frozen=True, slots=True)
class Function:
    """A function of each element of a dequantised tensor, given by its value on each of the 256 inputs."""

    real: Real
    values: NDArray[np.float32]


Symbol = Integer | Real | RealConstant | Accumulated | Sum | Averaged | Softmaxed | Function


def to_nhwc(graph: GraphBuilder, tensor: Integer, origin: str) -> str:
    """The 4-D tensor, stored as NHWC."""
    return _permuted(graph, tensor, NCHW_TO_NHWC, origin)


def to_model_order(graph: GraphBuilder, tensor: Integer, origin: str) -> str:
    """The tensor in the model's own order of dimensions."""
    return _permuted(graph, tensor, tuple(range(len(tensor.permutation))), origin)


def _permuted(
    graph: GraphBuilder, tensor: Integer, wanted: tuple[int, ...], origin: str
) -> str:
    if tensor.permutation == wanted:
        return tensor.name
    step = tuple(tensor.permutation.index(axis) for axis in wanted)
    shape = graph.types[tensor.name].shape
    moved = [axis for axis in step if shape[axis] != 1]
    if moved == sorted(moved):
        # Only dimensions of size 1 move: no element does.
        target = tuple(shape[axis] for axis in step)
        if target == shape:
            return tensor.name
        return graph.node(Reshape(target), (tensor.name,), tensor.name, origin)
    return graph.node(Transpose(step), (tensor.name,), tensor.name, origin)


def weights_of(constant: RealConstant, origin: str) -> Array:
    """The int8 weights; their zero points must be 0.

    Raises UnsupportedOperatorError otherwise.
    """
    if constant.values.dtype == np.uint8:
        shifted = constant.values.astype(np.int16) - 128
        zero_points = constant.zero_points - 128
    else:
        shifted, zero_points = constant.values, constant.zero_points
    if np.any(zero_points):
        raise UnsupportedOperatorError(
            f"node {origin!r}: weights with zero point {int(constant.zero_points.flat[0])}; "
            "required 0 (symmetric weights); quantise the weights symmetrically"
        )
    return shifted.astype(np.int8)


def quantize(
    graph: GraphBuilder, symbol: Symbol, scale: np.float32, zero_point: int, stem: str, origin: str
) -> Integer:
    """QuantizeLinear of ``symbol``: add the integer operator; ``zero_point`` is that of int8."""
    low, high = _limits(symbol, scale, zero_point)
    match symbol:
        case Accumulated(tensor=tensor):
            ratio = (symbol.x_scale * symbol.w_scales) / scale
            channels = graph.types[tensor.name].shape[-1]
            factors = np.broadcast_to(ratio.astype(F32), (channels,)).copy()
            scales = graph.constant(f"{stem}/scale", factors)
            name = graph.node(Requantize(zero_point, low, high), (tensor.name, scales), stem, origin)
            return Integer(name, tensor.permutation)
        case Sum(a=a, b=b):
            operator = Add(
                float(a.scale / scale),
                float(b.scale / scale),
                a.zero_point,
                b.zero_point,
                zero_point,
                low,
                high,
            )
            right = _permuted(graph, b.tensor, a.tensor.permutation, origin)
            return Integer(
                graph.node(operator, (a.tensor.name, right), stem, origin), a.tensor.permutation
            )
        case Averaged(real=real):
            window = symbol.kernel[0] * symbol.kernel[1]
            factor = real.scale / (scale * F32(window))
            pool = AveragePool2d(
                symbol.kernel, symbol.strides, real.zero_point, zero_point, float(F32(factor))
            )
            x = to_nhwc(graph, real.tensor, origin)
            return Integer(graph.node(pool, (x,), stem, origin), NCHW_TO_NHWC)
        case Softmaxed(real=real):
            softmax = Softmax(float(real.scale), real.zero_point, float(scale), zero_point)
            x = to_model_order(graph, real.tensor, origin)
            name = graph.node(softmax, (x,), stem, origin)
            return Integer(name, tuple(range(len(real.tensor.permutation))))
        case Real(tensor=tensor):
            if symbol.scale == scale and symbol.zero_point == zero_point:
                return tensor
            values = (np.arange(-128, 128) - symbol.zero_point).astype(F32) * symbol.scale
            return quantize(graph, Function(symbol, values), scale, zero_point, stem, origin)
        case Function(real=real):
            table = np.clip(np.rint(symbol.values / scale) + zero_point, -128, 127)
            constant = graph.constant(f"{stem}/table", table.astype(np.int8))
            name = graph.node(Lookup(), (real.tensor.name, constant), stem, origin)
            return replace(real.tensor, name=name)
        case _:
            raise UnsupportedOperatorError(
                f"node {origin!r}: cannot quantise a {type(symbol).__name__.lower()} value"
            )


def _limits(symbol: Symbol, scale: np.float32, zero_point: int) -> tuple[int, int]:
    """The int8 limits that a clip in real units comes to."""
    low, high = -128, 127
    if isinstance(symbol, Accumulated | Sum):
        if symbol.low > -np.inf:
            low = max(low, int(np.rint(F32(symbol.low) / scale)) + zero_point)
        if symbol.high < np.inf:
            high = min(high, int(np.rint(F32(symbol.high) / scale)) + zero_point)
    return min(low, 127), max(high, -128)
