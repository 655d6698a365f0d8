"""Converters of convolutions, dense layers and matrix products."""

import numpy as np

from ...dtypes import DType
from ...graph.fixed_point import scaled
from ...graph.formulas import Term, einsum
from ...graph.operators.contractions import Convolution
from ...graph.operators.integer.products import Conv2d, ConvTranspose2d, Dense
from ...graph.operators.transposed import TransposedConvolution
from .hybrid import hybrid_convolution, hybrid_dense, is_hybrid
from .node import BYTES, Converter, Node
from .products import (
    by_image,
    constant_bias,
    is_bytes,
    multipliers,
    requantized,
    requantized_once,
    signed_weights,
)
from .quantized import activated, limits_of, quantize_multiplier, signed_zero
from .sixteen import is_sixteen, requantized_wide, scaled_wide
from .windowing import Pads, pads_of, strides_of

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
    turned = weights.transpose(*((3, 0, 1, 2) if depthwise else (0, 3, 1, 2)))
    dtype = DType.INT64 if is_sixteen(node) else DType.INT32 if is_hybrid(node) else x.dtype
    convolution = Convolution(strides, dilations, pads, (1, 1), groups, dtype)
    if is_sixteen(node):
        image = (x.cast(DType.INT64) - node.scale(0).zero_point).transpose(0, 3, 1, 2)
        total = node.emit(convolution, image, turned.cast(DType.INT64))
        return requantized_wide(node, total.transpose(0, 2, 3, 1), 2)
    if is_hybrid(node):
        symmetric = not depthwise and len(set(node.scale(1).scales)) == 1
        return _finished(node, hybrid_convolution(node, convolution, turned, symmetric), 2)
    _require_same(node, x, weights)
    result = node.emit(convolution, x.transpose(0, 3, 1, 2), turned)
    return _finished(node, result.transpose(0, 2, 3, 1), 2)


def _require_same(node: Node, x: Term, weights: Term) -> None:
    if weights.dtype != x.dtype or not x.dtype.is_float:
        raise node.unsupported(f"{x.dtype} with weights of {weights.dtype}")


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
    if is_sixteen(node):
        wide = rows.cast(DType.INT64) - node.scale(0).zero_point
        operands = [(wide, [0, 1]), (weights.cast(DType.INT64), [2, 1])]
        total = einsum(operands, [0, 2], DType.INT64)
        return requantized_wide(node, total, 2, once=True).reshape(*shape)
    if is_hybrid(node):
        return _finished(node, hybrid_dense(node, rows), 2).reshape(*shape)
    _require_same(node, x, weights)
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


def _transposed_pads(
    node: Node, sizes: tuple[int, ...], wanted: tuple[int, ...], kernel: tuple[int, ...],
    strides: tuple[int, ...],
) -> tuple[Pads, tuple[int, ...]]:  # fmt: skip
    """Rows or columns cut before and after the whole result, and those added behind it."""
    node.require(min(*strides, *wanted) >= 1, "strides and sizes above 0")
    pads, added = [], []
    for (before, _), size, result, taps, stride in zip(
        pads_of(node, wanted, kernel, strides), sizes, wanted, kernel, strides, strict=True
    ):
        after = (size - 1) * stride + taps - before - result
        pads.append((before, max(after, 0)))
        added.append(max(-after, 0))
    return tuple(pads), tuple(added)


def convert_transposed(node: Node) -> Term:
    """size: of the result, weights: [O, KH, KW, C], x: [N, H, W, C], bias: [O]."""
    shape, weights, x = node.integers(0), node.term(1), node.term(2)
    fits = x.rank == weights.rank == len(shape) == 4 and weights.shape[3] == x.shape[3]
    node.require(fits and shape[3] == weights.shape[0], "[N, OH, OW, O], [O, KH, KW, C]")
    strides = strides_of(node)
    kernel = weights.shape[1:3]
    pads, added = _transposed_pads(node, x.shape[1:3], shape[1:3], kernel, strides)
    if x.dtype in BYTES:
        return _transposed_of_bytes(node, x, strides, pads, added)
    _require_same(node, x, weights)
    operator = TransposedConvolution(strides, (1, 1), pads, added, 1, x.dtype)
    result = node.emit(operator, x.transpose(0, 3, 1, 2), weights.transpose(3, 0, 1, 2))
    return _finished(node, result.transpose(0, 2, 3, 1), 3)


def _transposed_of_bytes(
    node: Node, x: Term, strides: tuple[int, int], pads: Pads, added: tuple[int, ...]
) -> Term:
    array, weight_zero = signed_weights(node)
    zero = signed_zero(node.scale(2), x.dtype)
    bias = constant_bias(node, 3, len(array), array, (zero, weight_zero))
    (top, bottom), (left, right) = pads
    layer = ConvTranspose2d(
        strides, (top, left, bottom, right), (added[0], added[1]), 1, zero, weight_zero
    )
    factors = multipliers(node, len(array), exact=x.dtype == DType.INT8, place=2)
    w, b = node.constant(array, DType.INT8), node.constant(bias, DType.INT32)
    return by_image(
        node,
        x,
        lambda image: requantized(node, node.emit(layer, node.signed(image), w, b), *factors),
    )


def convert_batch_matmul(node: Node) -> Term:
    """``a @ b`` of the last two dimensions, either of them transposed first."""
    a, b = node.term(0), node.term(1)
    node.require(min(a.rank, b.rank) >= 2, "2 dimensions or more")
    if node.attribute("adj_x"):
        a = a.move_axis(-1, a.rank - 2)
    if node.attribute("adj_y"):
        b = b.move_axis(-1, b.rank - 2)
    node.require(a.shape[-1] == b.shape[-2], "one inner size")
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (x.expand(*batch, *x.shape[-2:]) for x in (a, b))
    labels = list(range(3, 3 + len(batch)))
    operands = [(a, [*labels, 0, 1]), (b, [*labels, 1, 2])]
    if a.dtype.is_float:
        node.require(a.dtype == b.dtype, "one type")
        return einsum(operands, [*labels, 0, 2], a.dtype)
    dtype = DType.INT64 if a.dtype == DType.INT16 else DType.INT32
    wide = [
        (x.cast(dtype) - node.scale(place).zero_point, own)
        for place, (x, own) in enumerate(operands)
    ]
    total = einsum(wide, [*labels, 0, 2], dtype)
    if node.result().dtype == DType.INT32:
        return total
    if a.dtype not in (DType.INT8, DType.INT16):
        raise node.unsupported(f"elements of {a.dtype}")
    result = node.result_scale()
    product = float(np.float32(node.scale(0).scale) * np.float32(node.scale(1).scale))
    factors = quantize_multiplier(product / result.scale)
    wide_form = a.dtype == DType.INT16
    moved = scaled_wide(total, *factors) if wide_form else scaled(total, *factors)
    moved = moved + result.zero_point
    return moved.clip(*limits_of(a.dtype)).cast(a.dtype)


def convert_convolution_3d(node: Node) -> Term:
    """x: [N, D, H, W, C], weights: [KD, KH, KW, C / groups, O], bias: [O]."""
    x, weights = node.term(0), node.term(1)
    node.require(x.rank == weights.rank == 5, "5 dimensions")
    axes = ("d", "h", "w")
    strides = tuple(node.attribute(f"stride_{axis}") for axis in axes)
    dilations = tuple(node.attribute(f"dilation_{axis}_factor", 1) for axis in axes)
    pads = pads_of(node, x.shape[1:4], weights.shape[:3], strides, dilations)
    per_group = weights.shape[3]
    node.require(per_group > 0 and x.shape[4] % per_group == 0, "channels of whole groups")
    operator = Convolution(strides, dilations, pads, (1, 1, 1), x.shape[4] // per_group, x.dtype)
    result = node.emit(operator, x.transpose(0, 4, 1, 2, 3), weights.transpose(4, 3, 0, 1, 2))
    return _finished(node, result.transpose(0, 2, 3, 4, 1), 2)


def convert_transposed_3d(node: Node) -> Term:
    """size: of the result, weights: [KD, KH, KW, O, C], x: [N, D, H, W, C], bias: [O]."""
    shape, weights, x = node.integers(0), node.term(1), node.term(2)
    node.require(x.rank == weights.rank == len(shape) == 5, "5 dimensions")
    strides = tuple(node.attribute(f"stride_{axis}") for axis in ("d", "h", "w"))
    kernel = weights.shape[:3]
    pads, added = _transposed_pads(node, x.shape[1:4], shape[1:4], kernel, strides)
    operator = TransposedConvolution(strides, (1, 1, 1), pads, added, 1, x.dtype)
    result = node.emit(operator, x.transpose(0, 4, 1, 2, 3), weights.transpose(4, 3, 0, 1, 2))
    return _finished(node, result.transpose(0, 2, 3, 4, 1), 3)


CONTRACTIONS: dict[str, Converter] = {
    "BATCH_MATMUL": convert_batch_matmul,
    "CONV_2D": convert_convolution,
    "CONV_3D": convert_convolution_3d,
    "CONV_3D_TRANSPOSE": convert_transposed_3d,
    "DEPTHWISE_CONV_2D": convert_depthwise,
    "FULLY_CONNECTED": convert_fully_connected,
    "TRANSPOSE_CONV": convert_transposed,
}
