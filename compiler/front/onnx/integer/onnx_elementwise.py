"""Operators on each element: Add, Relu, Clip, Sigmoid and the like, and their QLinear forms."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ....errors import UnsupportedOperatorError
from .onnx_contractions import add_bias
from .onnx_state import ImportState, OnnxNode
from .quantize import code_points
from .values import F32, Accumulated, Array, Function, Integer, Real, RealConstant, Sum, Value

__all__ = [
    "convert_add",
    "convert_clip",
    "convert_mul",
    "convert_qlinear_add",
    "convert_qlinear_unary",
    "convert_relu",
    "convert_unary",
]


def convert_add(state: ImportState, node: OnnxNode) -> None:
    """Sum of two dequantised tensors, or a bias after MatMul."""
    left, right = state.value(node, 0), state.value(node, 1)
    if isinstance(left, RealConstant):
        left, right = right, left
    if isinstance(left, Accumulated) and isinstance(right, RealConstant):
        state.values[node.outputs[0]] = add_bias(state, node, left, right)
        return
    if not isinstance(left, Real) or not isinstance(right, Real):
        raise UnsupportedOperatorError(
            f"{node}: adds {type(left).__name__} and {type(right).__name__}; required "
            "two dequantised int8 tensors, or an int32 bias after MatMul"
        )
    state.values[node.outputs[0]] = _sum(state, node, left, right)


def convert_qlinear_add(state: ImportState, node: OnnxNode) -> None:
    """com.microsoft QLinearAdd: a, its scale and zero point, b and its, the sum's."""
    a, b = (state.operand(node, place) for place in (0, 3))
    state.store(node, _sum(state, node, a, b), 6)


def convert_mul(state: ImportState, node: OnnxNode) -> None:
    """Product of two functions of one dequantised tensor, as in ``x * sigmoid(x)``."""
    left, right = (_as_function(state.value(node, place)) for place in (0, 1))
    if left is None or right is None or left.real != right.real:
        raise UnsupportedOperatorError(
            f"{node}: required two functions of one dequantised int8 tensor"
        )
    state.values[node.outputs[0]] = Function(left.real, left.values * right.values)


def convert_relu(state: ImportState, node: OnnxNode) -> None:
    """Relu."""
    _clip(state, node, 0.0, np.inf)


def convert_clip(state: ImportState, node: OnnxNode) -> None:
    """Clip, its limits given as attributes or as constants."""
    low = _limit(state, node, 1, "min", -np.inf)
    high = _limit(state, node, 2, "max", np.inf)
    _clip(state, node, low, high)


def convert_unary(state: ImportState, node: OnnxNode) -> None:
    """A function of each element, by its table over the 256 int8 values."""
    value = _as_function(state.value(node, 0))
    if value is None:
        raise UnsupportedOperatorError(
            f"{node}: its input {node.inputs[0]!r} is not quantised; required "
            "QuantizeLinear and DequantizeLinear in front of it"
        )
    with np.errstate(over="ignore"):
        values = UNARY[node.kind](value.values, node).astype(F32)
    state.values[node.outputs[0]] = Function(value.real, values)


def convert_qlinear_unary(state: ImportState, node: OnnxNode) -> None:
    """com.microsoft QLinearSigmoid and QLinearLeakyRelu: x and its quantisation, y's."""
    real = state.operand(node, 0)
    with np.errstate(over="ignore"):
        values = UNARY[node.kind.removeprefix("QLinear")](code_points(real), node).astype(F32)
    state.store(node, Function(real, values), 3)


def _sum(state: ImportState, node: OnnxNode, a: Real, b: Real) -> Sum:
    shapes = [_model_shape(state, each.tensor) for each in (a, b)]
    if shapes[0] != shapes[1]:
        raise UnsupportedOperatorError(
            f"{node}: adds shapes {list(shapes[0])} and {list(shapes[1])}; required equal shapes"
        )
    return Sum(a, b)


def _model_shape(state: ImportState, tensor: Integer) -> tuple[int, ...]:
    shape = state.graph.types[tensor.name].shape
    return tuple(shape[tensor.permutation.index(axis)] for axis in range(len(shape)))


def _clip(state: ImportState, node: OnnxNode, low: float, high: float) -> None:
    value = state.value(node, 0)
    if isinstance(value, Accumulated | Sum):
        clipped = replace(value, low=max(value.low, low), high=min(value.high, high))
        state.values[node.outputs[0]] = clipped
        return
    function = _as_function(value)
    if function is None:
        raise UnsupportedOperatorError(
            f"{node}: its input {node.inputs[0]!r} is not quantised; required "
            "a convolution, a matrix product, a sum, or DequantizeLinear in front of it"
        )
    values = np.clip(function.values, F32(low), F32(high))
    state.values[node.outputs[0]] = replace(function, values=values)


def _as_function(value: Value) -> Function | None:
    match value:
        case Real():
            return Function(value, code_points(value))
        case Function():
            return value
        case _:
            return None


def _limit(state: ImportState, node: OnnxNode, place: int, attribute: str, default: float) -> float:
    if not node.has(place):
        return node.real(attribute, default)
    value = state.values.get(node.inputs[place])
    if isinstance(value, RealConstant):
        steps = value.values.reshape(-1).astype(np.float64) - value.zero_points
        return float((steps * value.scales)[0])
    return float(state.array(node, place).reshape(-1)[0])


def _sigmoid(x: Array, node: OnnxNode) -> Array:
    return F32(1) / (F32(1) + np.exp(-x))


def _hard_sigmoid(x: Array, node: OnnxNode) -> Array:
    alpha, beta = F32(node.real("alpha", 0.2)), F32(node.real("beta", 0.5))
    return np.clip(x * alpha + beta, F32(0), F32(1))


def _hard_swish(x: Array, node: OnnxNode) -> Array:
    return x * np.clip(x * F32(1 / 6) + F32(0.5), F32(0), F32(1))


def _leaky_relu(x: Array, node: OnnxNode) -> Array:
    return np.where(x < 0, x * F32(node.real("alpha", 0.01)), x)


def _elu(x: Array, node: OnnxNode) -> Array:
    return np.where(x < 0, F32(node.real("alpha", 1.0)) * np.expm1(x), x)


def _tanh(x: Array, node: OnnxNode) -> Array:
    return np.tanh(x)


def _absolute(x: Array, node: OnnxNode) -> Array:
    return np.abs(x)


def _negative(x: Array, node: OnnxNode) -> Array:
    return -x


UNARY: dict[str, Callable[[Array, OnnxNode], Array]] = {
    "Abs": _absolute,
    "Elu": _elu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "LeakyRelu": _leaky_relu,
    "Neg": _negative,
    "Sigmoid": _sigmoid,
    "Tanh": _tanh,
}
"""float32 functions of ONNX, by operator."""
