"""Transposed convolutions: ConvTranspose."""

from dataclasses import replace

import numpy as np

from ..errors import ModelError, UnsupportedOperatorError
from ..graph.bounds import check_accumulator
from ..graph.ops import ConvTranspose2d
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
    if pair(node, "dilations") != (1, 1):
        raise UnsupportedOperatorError(
            f"{node}: dilations {list(pair(node, 'dilations'))}; required 1"
        )
    if (
        node.text("auto_pad", "NOTSET") not in ("NOTSET", "VALID")
        or "output_shape" in node.attributes
    ):
        raise UnsupportedOperatorError(f"{node}: required explicit pads, without output_shape")
    w = _turned(node, w)
    weights, weight_zero = int8_weights(node, w, 0)
    name = to_nhwc(state.graph, x.tensor, node.name)
    groups = group_count(node, weights, state.graph.types[name].shape[3])
    bias = bias_of(state, node, 2, x.scale * w.scales, len(weights))
    check_accumulator(weights.astype(np.int64) - weight_zero, bias, x.zero_point, node.name)
    kernel = (weights.shape[2], weights.shape[3])
    strides = pair(node, "strides")
    operator = ConvTranspose2d(
        strides,
        window_pads(node, kernel, state.graph.types[name].shape, strides),
        pair(node, "output_padding", (0, 0)),
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
