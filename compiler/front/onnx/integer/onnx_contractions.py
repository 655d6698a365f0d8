"""Convolutions and matrix products: Conv, Gemm, MatMul, QLinearConv, QLinearMatMul, QGemm."""

from dataclasses import replace

import numpy as np

from ....errors import ModelError, UnsupportedOperatorError
from ....graph.bounds import check_accumulator
from ....graph.operators.integer.products import Conv2d, Dense
from ....graph.operators.integer.rules import Pads, Pair
from .onnx_state import ImportState, OnnxNode
from .values import (
    F32,
    NCHW_TO_NHWC,
    Accumulated,
    Array,
    Integer,
    Real,
    RealConstant,
    identity_order,
    to_model_order,
    to_nhwc,
)

__all__ = [
    "add_bias",
    "bias_of",
    "convert_conv",
    "convert_matmul",
    "convert_qgemm",
    "convert_qlinear_conv",
    "convert_qlinear_matmul",
    "group_count",
    "int8_weights",
    "pair",
    "require_images",
    "weights_of",
    "window_pads",
]


def pair(node: OnnxNode, name: str, default: tuple[int, ...] = (1, 1)) -> Pair:
    """An attribute with a value for height and one for width."""
    values = node.integers(name, default)
    if len(values) != 2:
        raise UnsupportedOperatorError(f"{node}: {name} is {list(values)}; required two dimensions")
    return values[0], values[1]


def window_pads(node: OnnxNode, kernel: Pair, shape: tuple[int, ...], strides: Pair) -> Pads:
    """Top, left, bottom, right, from ``pads`` or ``auto_pad``; ``shape`` is NHWC."""
    mode = node.text("auto_pad", "NOTSET")
    if mode in ("SAME_UPPER", "SAME_LOWER"):
        sides = []
        for size, window, stride in zip(shape[1:3], kernel, strides, strict=True):
            total = max((-(-size // stride) - 1) * stride + window - size, 0)
            small, large = total // 2, total - total // 2
            sides.append((small, large) if mode == "SAME_UPPER" else (large, small))
        return sides[0][0], sides[1][0], sides[0][1], sides[1][1]
    pads = (0, 0, 0, 0) if mode == "VALID" else node.integers("pads", (0, 0, 0, 0))
    if len(pads) != 4:
        raise UnsupportedOperatorError(f"{node}: pads {list(pads)}; required two dimensions")
    return pads[0], pads[1], pads[2], pads[3]


def convert_conv(state: ImportState, node: OnnxNode) -> None:
    """Conv between dequantised tensors."""
    x, w = state.real(node, 0), weights_of(state, node, 1)
    state.values[node.outputs[0]] = _conv(state, node, x, w, 2)


def convert_qlinear_conv(state: ImportState, node: OnnxNode) -> None:
    """QLinearConv: x, its scale and zero point, w and its, y's, and an int32 bias."""
    x = state.operand(node, 0)
    zeros = state.array(node, 5)
    w = state.constant(node, 3, state.array(node, 4), zeros, 0)
    state.store(node, _conv(state, node, x, w, 8), 6)


def convert_matmul(state: ImportState, node: OnnxNode) -> None:
    """MatMul and Gemm between dequantised tensors."""
    x, w = state.real(node, 0), weights_of(state, node, 1)
    state.values[node.outputs[0]] = _matmul(state, node, x, w, 2)


def convert_qlinear_matmul(state: ImportState, node: OnnxNode) -> None:
    """QLinearMatMul: a, its scale and zero point, constant b and its, y's."""
    a = state.operand(node, 0)
    w = state.constant(node, 3, state.array(node, 4), state.array(node, 5), 1)
    state.store(node, _matmul(state, node, a, w, len(node.inputs)), 6)


def convert_qgemm(state: ImportState, node: OnnxNode) -> None:
    """com.microsoft QGemm: a and its, constant b and its, int32 bias, y's scale and zero point."""
    a = state.operand(node, 0)
    axis = 0 if node.integer("transB", 0) else 1
    w = state.constant(node, 3, state.array(node, 4), state.array(node, 5), axis)
    result = _matmul(state, node, a, w, 6)
    if node.has(7):
        state.store(node, result, 7)
    else:
        state.values[node.outputs[0]] = result


def add_bias(
    state: ImportState, node: OnnxNode, left: Accumulated, right: RealConstant
) -> Accumulated:
    """MatMul and Add of an int32 constant: the constant becomes the bias of the node before."""
    last = state.graph.nodes[-1]
    if last.output != left.tensor.name or not np.isinf([left.low, left.high]).all():
        raise UnsupportedOperatorError(
            f"{node}: adds a constant to what is not the sum of the node before"
        )
    operator = last.operator
    assert isinstance(operator, Conv2d | Dense)
    scales = left.x_scale * left.w_scales
    added = _bias_values(node, right, scales, len(state.graph.constants[last.inputs[2]]))
    bias = state.graph.constants[last.inputs[2]].astype(np.int64) + added
    weights = state.graph.constants[last.inputs[1]]
    factors = weights.astype(np.int64) - operator.weight_zero_point
    check_accumulator(factors, bias, operator.zero_point, node.name)
    name = state.graph.constant(f"{node.outputs[0]}/bias", bias.astype(np.int32))
    state.graph.nodes[-1] = replace(last, inputs=(*last.inputs[:2], name))
    return left


def weights_of(state: ImportState, node: OnnxNode, place: int) -> RealConstant:
    constant = state.value(node, place)
    if not isinstance(constant, RealConstant):
        raise UnsupportedOperatorError(
            f"{node}: its weights {node.inputs[place]!r} are computed; "
            "required an int8 constant with DequantizeLinear"
        )
    return constant


def int8_weights(node: OnnxNode, constant: RealConstant, channel_axis: int) -> tuple[Array, int]:
    """The weights as int8, and the zero point that is still to be subtracted from each: 0 when all
    weights less theirs are int8.

    Raises ModelError for another element type, UnsupportedOperatorError when the zero points differ
    and some weight less its own is not int8.
    """
    values, count = constant.values, constant.values.shape[channel_axis]
    if values.dtype not in (np.int8, np.uint8):
        raise ModelError(f"{node}: weights are {values.dtype}; required int8 or uint8")
    if constant.scales.size != 1 and (
        constant.axis % values.ndim != channel_axis or constant.scales.size != count
    ):
        raise UnsupportedOperatorError(
            f"{node}: {constant.scales.size} weight scales along axis "
            f"{constant.axis}; required one, or {count} along axis {channel_axis}"
        )
    shape = [1] * values.ndim
    shape[channel_axis] = -1
    shifted = values.astype(np.int64) - constant.zero_points.reshape(shape)
    if shifted.min() >= -128 and shifted.max() <= 127:
        return shifted.astype(np.int8), 0
    if len(set(constant.zero_points.tolist())) > 1:
        raise UnsupportedOperatorError(
            f"{node}: weights less their zero points, which differ, reach "
            f"{int(shifted.min())}..{int(shifted.max())}; required -128..127, or one zero point; "
            "quantise the weights symmetrically (zero point 0 for int8)"
        )
    center = 128 if values.dtype == np.uint8 else 0
    stored = (values.astype(np.int64) - center).astype(np.int8)
    return stored, int(constant.zero_points[0]) - center


def bias_of(state: ImportState, node: OnnxNode, place: int, scales: Array, count: int) -> Array:
    """int64[count]; zeros when there is none."""
    if not node.has(place):
        return np.zeros(count, np.int64)
    name = node.inputs[place]
    value = state.values.get(name)
    if isinstance(value, RealConstant):
        return _bias_values(node, value, scales, count)
    array = state.array(node, place)
    if array.dtype == np.int32 and array.size == count:
        return array.reshape(-1).astype(np.int64)
    if array.dtype == np.float32 and array.size == count:
        return np.rint(array.reshape(-1).astype(np.float64) / scales).astype(np.int64)
    raise ModelError(
        f"{node}: bias {name!r} is {array.dtype}{list(array.shape)}; "
        f"required int32[{count}], or float32"
    )


def _bias_values(node: OnnxNode, bias: RealConstant, scales: Array, count: int) -> Array:
    """The bias in units of the accumulator.

    Raises ModelError when it has another type or its scale is not that of the accumulator.
    """
    if bias.values.dtype != np.int32 or bias.values.size not in (1, count):
        raise ModelError(
            f"{node}: bias is {bias.values.dtype}{list(bias.values.shape)}; required int32[{count}]"
        )
    if not np.allclose(bias.scales, scales, rtol=1e-3, atol=0):
        raise ModelError(
            f"{node}: bias scale {float(bias.scales[0])!r} is not the product "
            f"{float(np.ravel(scales)[0])!r} of input scale and weight scale"
        )
    values = bias.values.reshape(-1).astype(np.int64) - bias.zero_points
    return np.broadcast_to(values, (count,))


def _conv(
    state: ImportState, node: OnnxNode, x: Real, w: RealConstant, bias_place: int
) -> Accumulated:
    require_images(node, w)
    weights, weight_zero = int8_weights(node, w, 0)
    name = to_nhwc(state.graph, x.tensor, node.name)
    shape = state.graph.types[name].shape
    groups = group_count(node, weights, shape[3])
    kernel, strides = (weights.shape[2], weights.shape[3]), pair(node, "strides")
    bias = bias_of(state, node, bias_place, x.scale * w.scales, len(weights))
    check_accumulator(weights.astype(np.int64) - weight_zero, bias, x.zero_point, node.name)
    operator = Conv2d(
        strides, (0, 0, 0, 0), groups, x.zero_point, weight_zero, pair(node, "dilations")
    )
    pads = window_pads(node, operator.span(kernel), shape, strides)
    operator = replace(operator, pads=pads)
    stem = node.outputs[0]
    inputs = (
        name,
        state.graph.constant(f"{stem}/weights", weights.transpose(0, 2, 3, 1)),
        state.graph.constant(f"{stem}/bias", bias.astype(np.int32)),
    )
    out = state.graph.node(operator, inputs, f"{stem}/sum", node.name)
    return Accumulated(Integer(out, NCHW_TO_NHWC), x.scale, w.scales)


def require_images(node: OnnxNode, w: RealConstant) -> None:
    if w.values.ndim != 4:
        raise UnsupportedOperatorError(
            f"{node}: {w.values.ndim - 2} spatial dimensions; required 2"
        )


def group_count(node: OnnxNode, weights: Array, channels: int) -> int:
    """The number of groups, which must fit OIHW weights of ``channels``."""
    groups = node.integer("group", 1)
    if groups < 1 or channels != groups * weights.shape[1] or len(weights) % groups:
        raise ModelError(
            f"{node}: {groups} groups, {channels} channels and weights "
            f"{list(weights.shape)} do not fit"
        )
    return groups


def _matmul(
    state: ImportState, node: OnnxNode, x: Real, w: RealConstant, bias_place: int
) -> Accumulated:
    if w.values.ndim != 2:
        raise UnsupportedOperatorError(
            f"{node}: weights with {w.values.ndim} dimensions; required 2"
        )
    if node.integer("transA", 0) or node.real("alpha", 1.0) != 1 or node.real("beta", 1.0) != 1:
        raise UnsupportedOperatorError(f"{node}: required transA 0, alpha 1, beta 1")
    transposed = bool(node.integer("transB", 0))
    weights, weight_zero = int8_weights(node, w, 0 if transposed else 1)
    weights = weights if transposed else weights.T
    name = to_model_order(state.graph, x.tensor, node.name)
    bias = bias_of(state, node, bias_place, x.scale * w.scales, len(weights))
    check_accumulator(weights.astype(np.int64) - weight_zero, bias, x.zero_point, node.name)
    stem = node.outputs[0]
    inputs = (
        name,
        state.graph.constant(f"{stem}/weights", weights),
        state.graph.constant(f"{stem}/bias", bias.astype(np.int32)),
    )
    out = state.graph.node(Dense(x.zero_point, weight_zero), inputs, f"{stem}/sum", node.name)
    order = identity_order(len(state.graph.types[out].shape))
    return Accumulated(Integer(out, order), F32(x.scale), w.scales)
