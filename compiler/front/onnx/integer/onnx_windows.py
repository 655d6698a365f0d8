"""Pooling, means and softmax: MaxPool, AveragePool, GlobalAveragePool, ReduceMean, Softmax."""

from dataclasses import replace

from ....errors import UnsupportedOperatorError
from ....graph.operators.integer.rules import Pads, Pair
from ....graph.operators.integer.windows import MaxPool2d
from .onnx_contractions import pair, window_pads
from .onnx_state import ImportState, OnnxNode
from .values import (
    NCHW_TO_NHWC,
    Averaged,
    Integer,
    Real,
    Softmaxed,
    permuted,
    to_nhwc,
)

__all__ = [
    "convert_average_pool",
    "convert_max_pool",
    "convert_qlinear_average_pool",
    "convert_qlinear_softmax",
    "convert_reduce_mean",
    "convert_softmax",
]


def convert_max_pool(state: ImportState, node: OnnxNode) -> None:
    """MaxPool of an integer or a dequantised tensor."""
    value = state.value(node, 0)
    tensor = value.tensor if isinstance(value, Real) else value
    if not isinstance(tensor, Integer):
        raise UnsupportedOperatorError(
            f"{node}: its input {node.inputs[0]!r} is not quantised; required "
            "QuantizeLinear and DequantizeLinear in front of it"
        )
    if any(node.outputs[1:]) or node.integer("storage_order", 0):
        raise UnsupportedOperatorError(f"{node}: gives indices; required none")
    name = to_nhwc(state.graph, tensor, node.name)
    kernel, strides, pads = _window(state, node, state.graph.types[name].shape)
    operator = MaxPool2d(kernel, strides, pads)
    out = state.graph.node(operator, (name,), node.outputs[0], node.name)
    pooled = Integer(out, NCHW_TO_NHWC, tensor.unsigned)
    state.values[node.outputs[0]] = (
        replace(value, tensor=pooled) if isinstance(value, Real) else pooled
    )


def convert_average_pool(state: ImportState, node: OnnxNode) -> None:
    """AveragePool and GlobalAveragePool of a dequantised tensor."""
    state.values[node.outputs[0]] = _averaged(state, node, state.real(node, 0))


def convert_qlinear_average_pool(state: ImportState, node: OnnxNode) -> None:
    """com.microsoft QLinearAveragePool, QLinearGlobalAveragePool: x and its, y's quantisation."""
    if node.integer("channels_last", 0):
        raise UnsupportedOperatorError(f"{node}: channels_last 1; required 0")
    state.store(node, _averaged(state, node, state.operand(node, 0)), 3)


def convert_reduce_mean(state: ImportState, node: OnnxNode) -> None:
    """ReduceMean over two dimensions of an image: a global average pool."""
    real = state.real(node, 0)
    rank = len(real.tensor.permutation)
    axes = node.integers("axes", ())
    if node.has(1):
        axes = tuple(int(axis) for axis in state.array(node, 1).reshape(-1))
    spatial = tuple(sorted(axis % rank for axis in axes))
    if rank != 4 or len(spatial) != 2 or 0 in spatial:
        raise UnsupportedOperatorError(
            f"{node}: axes {list(axes)} of {rank}; required the height and width of an image"
        )
    (channels,) = {1, 2, 3} - set(spatial)
    order = (0, spatial[0], spatial[1], channels)
    name = permuted(state.graph, real.tensor, order, node.name)
    _, height, width, _ = state.graph.types[name].shape
    kernel = (height, width)
    keeps = bool(node.integer("keepdims", 1))
    state.values[node.outputs[0]] = Averaged(
        real, order, kernel, kernel, (0, 0, 0, 0), rounds_mean=False, keeps=keeps
    )


def convert_softmax(state: ImportState, node: OnnxNode) -> None:
    """Softmax over the last dimension of a dequantised tensor."""
    state.values[node.outputs[0]] = _softmaxed(state, node, state.real(node, 0), state.opset)


def convert_qlinear_softmax(state: ImportState, node: OnnxNode) -> None:
    """com.microsoft QLinearSoftmax: x and its, y's quantisation."""
    opset = node.integer("opset", state.opset)
    state.store(node, _softmaxed(state, node, state.operand(node, 0), opset), 3)


def _averaged(state: ImportState, node: OnnxNode, real: Real) -> Averaged:
    name = to_nhwc(state.graph, real.tensor, node.name)
    shape = state.graph.types[name].shape
    if node.kind.endswith("GlobalAveragePool"):
        kernel = (shape[1], shape[2])
        return Averaged(real, NCHW_TO_NHWC, kernel, kernel, (0, 0, 0, 0), rounds_mean=False)
    kernel, strides, pads = _window(state, node, shape)
    counts = not any(pads) or bool(node.integer("count_include_pad", 0))
    return Averaged(real, NCHW_TO_NHWC, kernel, strides, pads, rounds_mean=True, counts=counts)


def _window(state: ImportState, node: OnnxNode, shape: tuple[int, ...]) -> tuple[Pair, Pair, Pads]:
    """Kernel, strides and pads over an NHWC tensor of ``shape``."""
    kernel, strides = pair(node, "kernel_shape"), pair(node, "strides")
    if pair(node, "dilations") != (1, 1):
        raise UnsupportedOperatorError(
            f"{node}: dilations {list(pair(node, 'dilations'))}; required 1"
        )
    pads = window_pads(node, kernel, shape, strides)
    if not node.integer("ceil_mode", 0):
        return kernel, strides, pads
    sizes = (shape[1] + pads[0] + pads[2], shape[2] + pads[1] + pads[3])
    extra = [
        -(size - window) % stride
        for size, window, stride in zip(sizes, kernel, strides, strict=True)
    ]
    late = any(window < stride for window, stride in zip(kernel, strides, strict=True))
    counts = node.kind != "MaxPool" and bool(node.integer("count_include_pad", 0))
    if any(extra) and (counts or any(pads) or late):
        raise UnsupportedOperatorError(
            f"{node}: ceil_mode 1 with a window over the edge; required ceil_mode 0"
        )
    return kernel, strides, (pads[0], pads[1], pads[2] + extra[0], pads[3] + extra[1])


def _softmaxed(state: ImportState, node: OnnxNode, real: Real, opset: int) -> Softmaxed:
    rank = len(real.tensor.permutation)
    axis = node.integer("axis", -1 if opset >= 13 else 1) % rank
    if axis != rank - 1:
        raise UnsupportedOperatorError(f"{node}: over axis {axis}; required the last, {rank - 1}")
    return Softmaxed(real)
