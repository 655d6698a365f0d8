"""One converter for each ONNX operator."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..errors import ModelError, UnsupportedOperatorError
from ..graph.ir import Array, GraphBuilder
from ..graph.ops import Conv2d, Dense, MaxPool2d, Pads, Pair, Quantize, Reshape
from .quantized import (
    NCHW_TO_NHWC,
    Accumulated,
    Averaged,
    Function,
    Integer,
    Real,
    RealConstant,
    Softmaxed,
    Sum,
    Symbol,
    quantize,
    to_model_order,
    to_nhwc,
    weights_of,
)

__all__ = ["CONVERTERS", "ImportState", "OnnxNode"]

F32 = np.float32


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """A node of the model; inputs left out are empty strings."""

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, object]

    def attribute(self, name: str, default: object) -> object:
        """An attribute, or its default."""
        return self.attributes.get(name, default)


@dataclass(slots=True)
class ImportState:
    """The graph so far, and what each tensor of the model is."""

    graph: GraphBuilder
    arrays: dict[str, Array]
    values: dict[str, Symbol] = field(default_factory=dict)
    floats: set[str] = field(default_factory=set)
    """float32 inputs of the model."""

    def array(self, node: OnnxNode, place: int) -> Array:
        """An input that must be a constant."""
        name = node.inputs[place]
        if name not in self.arrays:
            raise ModelError(f"node {node.name!r}: input {name!r} must be a constant")
        return self.arrays[name]

    def symbol(self, node: OnnxNode, place: int) -> Symbol:
        """What an input is."""
        name = node.inputs[place]
        if name in self.values:
            return self.values[name]
        if name in self.floats or name in self.arrays:
            raise ModelError(
                f"node {node.name!r} ({node.kind}): input {name!r} is float32; required an int8 QDQ "
                "or QLinear model; quantise the model first"
            )
        raise ModelError(f"node {node.name!r}: input {name!r} is not computed by any node before it")

    def real(self, node: OnnxNode, place: int) -> Real:
        """An input that must be a dequantised int8 tensor."""
        symbol = self.symbol(node, place)
        if not isinstance(symbol, Real):
            raise ModelError(
                f"node {node.name!r} ({node.kind}): input {node.inputs[place]!r} is not quantised; "
                "required QuantizeLinear and DequantizeLinear in front of it"
            )
        return symbol


def _zero_point(array: Array) -> int:
    """The zero point of the int8 tensor: that of uint8 less 128."""
    return int(array.reshape(-1)[0]) - (128 if array.dtype == np.uint8 else 0)


def _per_tensor(state: ImportState, node: OnnxNode, first: int) -> tuple[np.float32, int, bool]:
    """Scale, int8 zero point, and whether the tensor is uint8, from two inputs of a node."""
    scale = state.array(node, first)
    if scale.size != 1:
        raise UnsupportedOperatorError(
            f"node {node.name!r}: an activation with {scale.size} scales; required one"
        )
    if len(node.inputs) <= first + 1 or not node.inputs[first + 1]:
        return F32(scale.reshape(-1)[0]), -128, True
    zero = state.array(node, first + 1)
    return F32(scale.reshape(-1)[0]), _zero_point(zero), zero.dtype == np.uint8


def _dequantize(state: ImportState, node: OnnxNode) -> None:
    name, out = node.inputs[0], node.outputs[0]
    if name in state.arrays:
        scales = np.atleast_1d(state.array(node, 1)).astype(F32)
        zeros = np.zeros(len(scales), np.int64)
        if len(node.inputs) > 2 and node.inputs[2]:
            zeros = np.atleast_1d(state.array(node, 2)).astype(np.int64)
        axis = int(node.attribute("axis", 1))  # type: ignore[call-overload]
        state.values[out] = RealConstant(state.arrays[name], scales, zeros, axis)
        return
    symbol = state.symbol(node, 0)
    if not isinstance(symbol, Integer):
        raise ModelError(f"node {node.name!r}: input {name!r} is not an integer tensor")
    scale, zero_point, _ = _per_tensor(state, node, 1)
    state.values[out] = Real(symbol, scale, zero_point)


def _quantize(state: ImportState, node: OnnxNode) -> None:
    name, out = node.inputs[0], node.outputs[0]
    scale, zero_point, unsigned = _per_tensor(state, node, 1)
    if name in state.floats:
        order = tuple(range(len(state.graph.types[name].shape)))
        operator = Quantize(float(scale), zero_point)
        tensor = Integer(state.graph.node(operator, (name,), out, node.name), order)
    else:
        tensor = quantize(state.graph, state.symbol(node, 0), scale, zero_point, out, node.name)
    state.values[out] = replace(tensor, unsigned=unsigned)


def _pads(node: OnnxNode, kernel: Pair, shape: tuple[int, ...], strides: Pair) -> Pads:
    """Top, left, bottom, right; ``shape`` is NHWC."""
    mode = node.attribute("auto_pad", b"NOTSET")
    if mode in (b"SAME_UPPER", b"SAME_LOWER"):
        sides = []
        for size, window, stride in zip(shape[1:3], kernel, strides, strict=True):
            total = max((-(-size // stride) - 1) * stride + window - size, 0)
            small = total // 2
            sides.append((small, total - small) if mode == b"SAME_UPPER" else (total - small, small))
        return sides[0][0], sides[1][0], sides[0][1], sides[1][1]
    top, left, bottom, right = node.attribute("pads", (0, 0, 0, 0))  # type: ignore[misc]
    return int(top), int(left), int(bottom), int(right)


def _pair(node: OnnxNode, name: str) -> Pair:
    first, second = node.attribute(name, (1, 1))  # type: ignore[misc]
    return int(first), int(second)


def _scales(x: Real, w: RealConstant) -> NDArray[np.float32]:
    return np.atleast_1d(w.scales).astype(F32)


def _bias(state: ImportState, node: OnnxNode, place: int, count: int) -> Array:
    """The int32 bias: a dequantised int32 constant; zeros when there is none."""
    if len(node.inputs) <= place or not node.inputs[place]:
        return np.zeros(count, np.int32)
    symbol = state.values.get(node.inputs[place])
    if not isinstance(symbol, RealConstant) or symbol.values.dtype != np.int32:
        raise ModelError(f"node {node.name!r}: the bias must be int32 with a DequantizeLinear")
    return symbol.values.reshape(-1)


def _check_overflow(node: OnnxNode, weights: Array, bias: Array, zero_point: int) -> None:
    """Raise ModelError unless no input can make an int32 accumulator overflow."""
    largest = max(127 - zero_point, zero_point + 128)
    sums = np.abs(weights.astype(np.int64)).reshape(len(weights), -1).sum(axis=1)
    bound = int((sums * largest + np.abs(bias.astype(np.int64))).max())
    if bound >= 1 << 31:
        raise ModelError(
            f"node {node.name!r}: an accumulator can reach {bound}; int32 holds {(1 << 31) - 1}"
        )


def _conv(state: ImportState, node: OnnxNode) -> None:
    x = state.real(node, 0)
    constant = state.symbol(node, 1)
    if not isinstance(constant, RealConstant):
        raise ModelError(f"node {node.name!r}: the weights must be constant")
    weights = weights_of(constant, node.name)
    tensor = _add_conv(state, node, x.tensor, x.zero_point, weights, _bias(state, node, 2, len(weights)))
    scales = _scales(x, constant)
    state.values[node.outputs[0]] = Accumulated(tensor, scales.astype(np.float64), x.scale, scales)


def _add_conv(
    state: ImportState, node: OnnxNode, x: Integer, zero_point: int, weights: Array, bias: Array
) -> Integer:
    if weights.ndim != 4:
        raise UnsupportedOperatorError(
            f"node {node.name!r}: a {weights.ndim - 2}-D convolution; required 2-D"
        )
    if _pair(node, "dilations") != (1, 1):
        raise UnsupportedOperatorError(
            f"node {node.name!r}: dilations {_pair(node, 'dilations')}; required (1, 1)"
        )
    name = to_nhwc(state.graph, x, node.name)
    shape = state.graph.types[name].shape
    groups = int(node.attribute("group", 1))  # type: ignore[call-overload]
    if groups not in (1, shape[3]) or (groups > 1 and len(weights) != groups):
        raise UnsupportedOperatorError(
            f"node {node.name!r}: {groups} groups of {shape[3]} channels; required 1 group, or depthwise "
            "with as many outputs as inputs"
        )
    kernel = (weights.shape[2], weights.shape[3])
    strides = _pair(node, "strides")
    _check_overflow(node, weights, bias, zero_point)
    operator = Conv2d(strides, _pads(node, kernel, shape, strides), groups, zero_point)
    w = state.graph.constant(f"{node.outputs[0]}/weights", weights.transpose(0, 2, 3, 1))
    b = state.graph.constant(f"{node.outputs[0]}/bias", bias.astype(np.int32))
    out = state.graph.node(operator, (name, w, b), f"{node.outputs[0]}/sum", node.name)
    return Integer(out, NCHW_TO_NHWC)


def _matmul(state: ImportState, node: OnnxNode) -> None:
    x = state.real(node, 0)
    constant = state.symbol(node, 1)
    if not isinstance(constant, RealConstant) or constant.values.ndim != 2:
        raise UnsupportedOperatorError(f"node {node.name!r}: required constant 2-D weights")
    weights = weights_of(constant, node.name)
    if node.kind == "MatMul" or not node.attribute("transB", 0):
        weights = weights.T
    if node.kind == "Gemm" and (
        node.attribute("transA", 0)
        or node.attribute("alpha", 1.0) != 1.0
        or node.attribute("beta", 1.0) != 1.0
    ):
        raise UnsupportedOperatorError(f"node {node.name!r}: required transA 0, alpha 1, beta 1")
    bias = _bias(state, node, 2, len(weights)) if node.kind == "Gemm" else np.zeros(len(weights))
    tensor = _add_dense(state, node, x.tensor, x.zero_point, weights, bias)
    scales = _scales(x, constant)
    state.values[node.outputs[0]] = Accumulated(tensor, scales.astype(np.float64), x.scale, scales)


def _add_dense(
    state: ImportState, node: OnnxNode, x: Integer, zero_point: int, weights: Array, bias: Array
) -> Integer:
    name = to_model_order(state.graph, x, node.name)
    _check_overflow(node, weights, bias, zero_point)
    w = state.graph.constant(f"{node.outputs[0]}/weights", weights)
    b = state.graph.constant(f"{node.outputs[0]}/bias", bias.astype(np.int32))
    out = state.graph.node(
        Dense(zero_point), (name, w, b), f"{node.outputs[0]}/sum", node.name
    )
    return Integer(out, tuple(range(len(state.graph.types[out].shape))))


def _add(state: ImportState, node: OnnxNode) -> None:
    left, right = state.symbol(node, 0), state.symbol(node, 1)
    if isinstance(left, RealConstant):
        left, right = right, left
    if isinstance(left, Accumulated) and isinstance(right, RealConstant):
        state.values[node.outputs[0]] = _add_bias(state, node, left, right)
        return
    if not isinstance(left, Real) or not isinstance(right, Real):
        raise UnsupportedOperatorError(
            f"node {node.name!r}: Add of two values that are not both quantised tensors"
        )
    state.values[node.outputs[0]] = Sum(left, right)


def _add_bias(
    state: ImportState, node: OnnxNode, left: Accumulated, right: RealConstant
) -> Accumulated:
    """MatMul and Add of an int32 constant: the constant becomes the bias of the node before."""
    last = state.graph.nodes[-1]
    if last.output != left.tensor.name or right.values.dtype != np.int32:
        raise UnsupportedOperatorError(
            f"node {node.name!r}: Add of a constant that is not the int32 bias of the node before"
        )
    bias = state.graph.constants[last.inputs[2]] + right.values.reshape(-1)
    weights = state.graph.constants[last.inputs[1]]
    operator = last.operator
    assert isinstance(operator, Conv2d | Dense)
    _check_overflow(node, weights, bias, operator.zero_point)
    name = state.graph.constant(f"{node.outputs[0]}/bias", bias.astype(np.int32))
    state.graph.nodes[-1] = replace(last, inputs=(*last.inputs[:2], name))
    return left


def _clip(low: float, high: float, state: ImportState, node: OnnxNode) -> None:
    symbol = state.symbol(node, 0)
    match symbol:
        case Accumulated() | Sum():
            clipped: Symbol = replace(
                symbol, low=max(symbol.low, low), high=min(symbol.high, high)
            )
        case Real():
            clipped = _function(symbol, lambda x: np.clip(x, F32(low), F32(high)))
        case _:
            raise UnsupportedOperatorError(f"node {node.name!r}: {node.kind} of this value")
    state.values[node.outputs[0]] = clipped


def _relu(state: ImportState, node: OnnxNode) -> None:
    _clip(0.0, np.inf, state, node)


def _clip_node(state: ImportState, node: OnnxNode) -> None:
    limits = [-np.inf, np.inf]
    for place in (1, 2):
        if len(node.inputs) > place and node.inputs[place]:
            name = node.inputs[place]
            symbol = state.values.get(name)
            array = symbol.values if isinstance(symbol, RealConstant) else state.array(node, place)
            value = float(np.asarray(array).reshape(-1)[0])
            if isinstance(symbol, RealConstant):
                value = (value - float(symbol.zero_points[0])) * float(symbol.scales[0])
            limits[place - 1] = value
    for place, name in enumerate(("min", "max")):
        if name in node.attributes:
            limits[place] = float(node.attributes[name])  # type: ignore[arg-type]
    _clip(limits[0], limits[1], state, node)


def _function(real: Real, function: Callable[[Array], Array]) -> Function:
    values = (np.arange(-128, 128) - real.zero_point).astype(F32) * real.scale
    return Function(real, function(values).astype(F32))


def _unary(function: Callable[[Array], Array]) -> Callable[[ImportState, OnnxNode], None]:
    def convert(state: ImportState, node: OnnxNode) -> None:
        state.values[node.outputs[0]] = _function(state.real(node, 0), function)

    return convert


def _average_pool(state: ImportState, node: OnnxNode) -> None:
    real = state.real(node, 0)
    shape = state.graph.types[to_nhwc(state.graph, real.tensor, node.name)].shape
    if node.kind == "GlobalAveragePool":
        kernel = (shape[1], shape[2])
        strides = kernel
    else:
        kernel, strides = _pair(node, "kernel_shape"), _pair(node, "strides")
        if any(_pads(node, kernel, shape, strides)):
            raise UnsupportedOperatorError(f"node {node.name!r}: AveragePool with padding")
    state.values[node.outputs[0]] = Averaged(real, kernel, strides)


def _max_pool(state: ImportState, node: OnnxNode) -> None:
    real = state.real(node, 0)
    name = to_nhwc(state.graph, real.tensor, node.name)
    kernel, strides = _pair(node, "kernel_shape"), _pair(node, "strides")
    pads = _pads(node, kernel, state.graph.types[name].shape, strides)
    out = state.graph.node(
        MaxPool2d(kernel, strides, pads), (name,), node.outputs[0], node.name
    )
    tensor = Integer(out, NCHW_TO_NHWC, real.tensor.unsigned)
    state.values[node.outputs[0]] = replace(real, tensor=tensor)


def _softmax(state: ImportState, node: OnnxNode) -> None:
    real = state.real(node, 0)
    rank = len(real.tensor.permutation)
    axis = int(node.attribute("axis", -1)) % rank  # type: ignore[call-overload]
    if axis != rank - 1:
        raise UnsupportedOperatorError(
            f"node {node.name!r}: Softmax over axis {axis}; required the last, {rank - 1}"
        )
    state.values[node.outputs[0]] = Softmaxed(real)


def _moved(state: ImportState, node: OnnxNode) -> tuple[Integer, Symbol]:
    symbol = state.symbol(node, 0)
    if isinstance(symbol, Real):
        return symbol.tensor, symbol
    if isinstance(symbol, Integer):
        return symbol, symbol
    raise UnsupportedOperatorError(
        f"node {node.name!r}: {node.kind} of a value that is not a quantised tensor"
    )


def _with(symbol: Symbol, tensor: Integer) -> Symbol:
    return replace(symbol, tensor=tensor) if isinstance(symbol, Real) else tensor


def _transpose(state: ImportState, node: OnnxNode) -> None:
    tensor, symbol = _moved(state, node)
    rank = len(tensor.permutation)
    steps = node.attribute("perm", tuple(reversed(range(rank))))
    back = [list(steps).index(axis) for axis in range(rank)]  # type: ignore[call-overload]
    moved = replace(tensor, permutation=tuple(back[axis] for axis in tensor.permutation))
    state.values[node.outputs[0]] = _with(symbol, moved)


def _reshape(state: ImportState, node: OnnxNode) -> None:
    tensor, symbol = _moved(state, node)
    name = to_model_order(state.graph, tensor, node.name)
    old = state.graph.types[name].shape
    match node.kind:
        case "Flatten":
            axis = int(node.attribute("axis", 1))  # type: ignore[call-overload]
            wanted = [int(np.prod(old[:axis], dtype=int)), -1]
        case "Squeeze" | "Unsqueeze":
            wanted = _squeezed(state, node, old)
        case _:
            wanted = [int(size) for size in state.array(node, 1)]
            wanted = [old[i] if size == 0 else size for i, size in enumerate(wanted)]
    if wanted and wanted[0] == -1 and wanted.count(-1) == 1:
        wanted[0] = 1 if int(np.prod(wanted[1:])) == int(np.prod(old)) else -1
    shape = tuple(np.empty(old, np.bool_).reshape(wanted).shape)
    out = state.graph.node(Reshape(shape), (name,), node.outputs[0], node.name)
    state.values[node.outputs[0]] = _with(
        symbol, Integer(out, tuple(range(len(shape))), tensor.unsigned)
    )


def _squeezed(state: ImportState, node: OnnxNode, old: tuple[int, ...]) -> list[int]:
    if len(node.inputs) > 1 and node.inputs[1]:
        axes = [int(axis) for axis in state.array(node, 1)]
    else:
        axes = [int(axis) for axis in node.attribute("axes", ())]  # type: ignore[attr-defined]
    if node.kind == "Squeeze":
        axes = [axis % len(old) for axis in axes] or [i for i, n in enumerate(old) if n == 1]
        return [size for axis, size in enumerate(old) if axis not in axes]
    rank = len(old) + len(axes)
    sizes = iter(old)
    places = {axis % rank for axis in axes}
    return [1 if axis in places else next(sizes) for axis in range(rank)]


def _identity(state: ImportState, node: OnnxNode) -> None:
    state.values[node.outputs[0]] = state.symbol(node, 0)


def _sigmoid(x: Array) -> Array:
    return F32(1) / (F32(1) + np.exp(-x))


def _hard_sigmoid(x: Array) -> Array:
    return np.clip(x / F32(6) + F32(0.5), F32(0), F32(1))


CONVERTERS: dict[str, Callable[[ImportState, OnnxNode], None]] = {
    "Add": _add,
    "AveragePool": _average_pool,
    "Clip": _clip_node,
    "Conv": _conv,
    "DequantizeLinear": _dequantize,
    "Flatten": _reshape,
    "Gemm": _matmul,
    "GlobalAveragePool": _average_pool,
    "HardSwish": _unary(lambda x: x * _hard_sigmoid(x)),
    "Identity": _identity,
    "MatMul": _matmul,
    "MaxPool": _max_pool,
    "QuantizeLinear": _quantize,
    "Relu": _relu,
    "Reshape": _reshape,
    "Sigmoid": _unary(_sigmoid),
    "Softmax": _softmax,
    "Squeeze": _reshape,
    "Tanh": _unary(np.tanh),
    "Transpose": _transpose,
    "Unsqueeze": _reshape,
}
