"""Converters of convolutions, dense layers and matrix products."""

from ...dtypes import DType
from ...graph.formulas import Term, einsum
from ...graph.operators.contractions import Convolution
from ...graph.operators.integer.products import Conv2d, Dense
from .hybrid import dequantised_weights
from .node import Converter, Node
from .products import (
    by_image,
    constant_bias,
    is_bytes,
    multipliers,
    requantized,
    requantized_once,
    signed_weights,
)
from .quantized import activated, signed_zero
from .windowing import pads_of, strides_of

__all__ = ["CONTRACTIONS"]


def convert_convolution(node: Node) -> Term:
    """x: [N, H, W, C], weights: [O, KH, KW, C / groups], bias: [O]."""
    x, weights = node.term(0), node.term(1)
    node.require(x.rank == 4 and weights.rank == 4, "x and weights of 4 dimensions")
    outputs, per_group = weights.shape[0], weights.shape[3]
    node.require(per_group > 0 and x.shape[3] % per_group == 0, "weights [O, KH, KW, C / groups]")
    groups = x.shape[3] // per_group
    node.require(groups > 0 and outputs % groups == 0, f"as many outputs for {groups} groups")
    return _convolution(node, x, weights, groups)


def convert_depthwise(node: Node) -> Term:
    """x: [N, H, W, C], weights: [1, KH, KW, O], of which each channel has O / C, bias: [O]."""
    x, weights = node.term(0), node.term(1)
    node.require(x.rank == 4 and weights.rank == 4, "x and weights of 4 dimensions")
    fits = weights.shape[0] == 1 and x.shape[3] > 0 and weights.shape[3] % x.shape[3] == 0
    node.require(fits, "weights [1, KH, KW, C * multiplier]")
    return _convolution(node, x, weights, x.shape[3], depthwise=True)


def _convolution(node: Node, x: Term, weights: Term, groups: int, depthwise: bool = False) -> Term:
    strides = strides_of(node)
    dilations = node.attribute("dilation_h_factor", 1), node.attribute("dilation_w_factor", 1)
    kernel = weights.shape[1:3]
    pads = pads_of(node, x.shape[1:3], kernel, strides, dilations)
    if is_bytes(node):
        array, weight_zero = signed_weights(node)
        if depthwise:
            array = array.transpose(3, 1, 2, 0)
        zero = signed_zero(node.scale(0), x.dtype)
        outputs = len(array)
        bias = constant_bias(node, 2, outputs, array, (zero, weight_zero))
        (top, bottom), (left, right) = pads
        operator = Conv2d(strides, (top, left, bottom, right), groups, zero, weight_zero, dilations)
        factors = multipliers(node, outputs, exact=x.dtype == DType.INT8)
        w, b = node.constant(array, DType.INT8), node.constant(bias, DType.INT32)

        def layer(image: Term) -> Term:
            total = node.emit(operator, node.signed(image), w, b)
            return requantized(node, total, *factors)

        return by_image(node, x, layer)
    weights = dequantised_weights(node, 1)
    order = (3, 0, 1, 2) if depthwise else (0, 3, 1, 2)
    convolution = Convolution(strides, dilations, pads, (1, 1), groups, x.dtype)
    result = node.emit(convolution, x.transpose(0, 3, 1, 2), weights.transpose(*order))
    return _finished(node, result.transpose(0, 2, 3, 1), 2)


def _finished(node: Node, x: Term, bias: int) -> Term:
    """The bias, and the fused activation."""
    if node.optional(bias) is not None:
        x = x + node.term(bias).cast(x.dtype)
    return activated(node, x)


def convert_fully_connected(node: Node) -> Term:
    """x: [..., K], weights: [O, K], bias: [O]; leading dimensions become one unless kept."""
    x, weights = node.term(0), node.term(1)
    node.require(weights.rank == 2 and x.rank >= 1, "weights [O, K]")
    if node.attribute("weights_format"):
        raise node.unsupported("shuffled weights")
    outputs, size = weights.shape
    node.require(size > 0 and x.tensor.type.elements % size == 0, f"rows of {size}")
    kept = node.attribute("keep_num_dims")
    node.require(not kept or x.shape[-1] == size, f"rows of {size}")
    rows = x.reshape(x.tensor.type.elements // size, size)
    shape = (*x.shape[:-1], outputs) if kept else (rows.shape[0], outputs)
    if is_bytes(node):
        return _dense_of_bytes(node, rows).reshape(*shape)
    weights = dequantised_weights(node, 1)
    result = einsum([(rows, [0, 1]), (weights, [2, 1])], [0, 2], x.dtype)
    return _finished(node, result, 2).reshape(*shape)


def _dense_of_bytes(node: Node, rows: Term) -> Term:
    array, weight_zero = signed_weights(node)
    zero = signed_zero(node.scale(0), rows.dtype)
    bias = constant_bias(node, 2, len(array), array, (zero, weight_zero))
    operands = node.constant(array, DType.INT8), node.constant(bias, DType.INT32)
    x = rows
    if node.term(0).tensor.name in node.context.signed:
        x = Term(node.context, node.context.signed[node.term(0).tensor.name]).reshape(*rows.shape)
    total = node.emit(Dense(zero, weight_zero), node.signed(x), *operands)
    return requantized_once(node, total)


CONTRACTIONS: dict[str, Converter] = {
    "CONV_2D": convert_convolution,
    "DEPTHWISE_CONV_2D": convert_depthwise,
    "FULLY_CONNECTED": convert_fully_connected,
}
