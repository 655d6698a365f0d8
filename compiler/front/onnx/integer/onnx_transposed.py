"""Transposed convolutions: ConvTranspose."""

from dataclasses import replace

import numpy as np

from ....errors import ModelError, UnsupportedOperatorError
from ....graph.bounds import check_accumulator
from ....graph.ir import Array
from ....graph.operators.integer.products import ConvTranspose2d
from ....graph.operators.integer.rules import Pads, Pair
from .onnx_contractions import (
    bias_of,
    group_count,
    int8_weights,
    pair,
    require_images,
    weights_of,
    window_pads,
)
from .onnx_state import ImportState, OnnxNode
from .values import NCHW_TO_NHWC, Accumulated, Integer, RealConstant, to_nhwc

__all__ = ["convert_conv_transpose"]


def convert_conv_transpose(state: ImportState, node: OnnxNode) -> None:
    """ConvTranspose between dequantised tensors.

    Its float sums may round otherwise than ours, which are exact: ties may differ by one.
    """
    x, w = state.real(node, 0), weights_of(state, node, 1)
    require_images(node, w)
    w = _turned(node, w)
    weights, weight_zero = int8_weights(node, w, 0)
    weights = _apart(weights, pair(node, "dilations"), weight_zero)
    name = to_nhwc(state.graph, x.tensor, node.name)
    groups = group_count(node, weights, state.graph.types[name].shape[3])
    bias = bias_of(state, node, 2, x.scale * w.scales, len(weights))
    check_accumulator(weights.astype(np.int64) - weight_zero, bias, x.zero_point, node.name)
    kernel = (weights.shape[2], weights.shape[3])
    strides = pair(node, "strides")
    pads, added = _edges(node, kernel, state.graph.types[name].shape, strides)
    operator = ConvTranspose2d(
        strides,
        pads,
        added,
        groups,
        x.zero_point,
        weight_zero,
    )
    stem = node.outputs[0]
    inputs = (
        name,
        state.graph.constant(f"{stem}/weights", weights.transpose(0, 2, 3, 1)),
        state.graph.constant(f"{stem}/bias", bias.astype(np.int32)),
    )
    out = state.graph.node(operator, inputs, f"{stem}/sum", node.name)
    total = Integer(out, NCHW_TO_NHWC)
    state.values[stem] = Accumulated(total, x.scale, w.scales)


def _apart(weights: Array, dilations: Pair, zero: int) -> Array:
    """Weights [O, C, KH, KW] with taps that count as 0 between those of a dilated kernel."""
    *outer, height, width = weights.shape
    down, across = dilations
    size = (*outer, (height - 1) * down + 1, (width - 1) * across + 1)
    wide = np.full(size, zero, weights.dtype)
    wide[:, :, ::down, ::across] = weights
    return wide


def _edges(
    node: OnnxNode, kernel: Pair, shape: tuple[int, ...], strides: Pair
) -> tuple[Pads, Pair]:
    """Rows and columns cut off at each side, and those added at the end; ``shape`` is NHWC."""
    more, mode = pair(node, "output_padding", (0, 0)), node.text("auto_pad", "NOTSET")
    wanted = node.integers("output_shape", ())[-2:]
    same = mode in ("SAME_UPPER", "SAME_LOWER")
    if not wanted and not same:
        return window_pads(node, kernel, shape, strides), more
    sides, added = [], []
    for axis, (size, stride, taps) in enumerate(zip(shape[1:3], strides, kernel, strict=True)):
        result = wanted[axis] if wanted else size * stride
        total = (size - 1) * stride + taps + more[axis] - result
        small, large = max(total, 0) // 2, max(total, 0) - max(total, 0) // 2
        sides.append((small, large) if mode == "SAME_UPPER" else (large, small))
        added.append(more[axis] + max(-total, 0))
    return (sides[0][0], sides[1][0], sides[0][1], sides[1][1]), (added[0], added[1])


def _turned(node: OnnxNode, w: RealConstant) -> RealConstant:
    """Weights [C, O / groups, KH, KW] as [O, C / groups, KH, KW], the first axis that of scales."""
    groups = node.integer("group", 1)
    channels, outputs, *kernel = w.values.shape
    if groups < 1 or channels % groups:
        raise ModelError(f"{node}: {groups} groups do not fit {channels} channels")
    if w.scales.size > 1 and (w.axis % w.values.ndim != 1 or w.scales.size != outputs):
        raise UnsupportedOperatorError(
            f"{node}: {w.scales.size} weight scales along axis {w.axis}; required one, or "
            f"{outputs} along axis 1"
        )
    apart = w.values.reshape(groups, channels // groups, outputs, *kernel)
    values = apart.swapaxes(1, 2).reshape(groups * outputs, channels // groups, *kernel)
    if w.scales.size == 1:
        return replace(w, values=values, axis=0)
    scales, zeros = np.tile(w.scales, groups), np.tile(w.zero_points, groups)
    return RealConstant(values, scales, zeros, 0)
