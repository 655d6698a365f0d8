"""Activations with a scale for each channel, between a convolution and a depthwise one.

OpenVINO's NNCF quantises what depthwise convolutions read like this.  A requantisation has a scale
for each channel anyway, and a depthwise convolution multiplies no channel with another, so that its
weights' scales take in those of what it reads.  Zero points that differ are made one: the bytes are
the accelerator's own, since nothing else may read them.
"""

from dataclasses import replace

import numpy as np

from ...ir import Node
from ...operators.elementwise import Binary, BinaryFunction
from ...operators.integer.values import Lookup, Requantize
from ...operators.quantization import DequantizeLinear, QuantizeLinear
from .channel_constants import in_levels
from .quantize import requantized, sum_of
from .state import State, UnrecognisedError
from .values import F32, Accumulated, Array, ByChannel, Integer, Real, RealConstant, Value

__all__ = [
    "dequantize_channels",
    "has_channel_scales",
    "limited",
    "of_depthwise",
    "quantize_channels",
]

CHANNELS = 1
"""Dimension of channels that a convolution of the model reads."""


def has_channel_scales(state: State, node: Node) -> bool:
    """True if a QuantizeLinear or DequantizeLinear has a list of constant scales."""
    scale = state.array(node.inputs[1])
    return scale is not None and scale.size > 1


def quantize_channels(state: State, node: Node) -> ByChannel:
    """Bytes of a convolution's sums, each channel in its own scale.

    Raises UnrecognisedError for other values, and where one zero point leaves no room for all.
    """
    value, scales, zeros = state.value(node.inputs[0]), *_parameters(state, node)
    operator = node.operator
    assert isinstance(operator, QuantizeLinear)
    along = isinstance(value, Accumulated) and value.channel == operator.axis == CHANNELS
    if not isinstance(value, Accumulated) or not along:
        raise UnrecognisedError(
            f"an activation with {scales.size} scales; required one, or one for each channel of a "
            "convolution that a depthwise one reads"
        )
    counts = np.unique(zeros, return_counts=True)
    zero = int(counts[0][counts[1].argmax()])
    ends = [np.rint(F32(limit) / scales) for limit in (value.low, value.high)]
    low, high = (np.clip(end, -128 - zeros, 127 - zeros) + zero for end in ends)
    if low.min() < -128 or high.max() > 127:
        raise UnrecognisedError(
            f"an activation with zero points from {zeros.min()} to {zeros.max()} by channels, "
            "which no single one can stand for"
        )
    # Each channel in its own steps: the sum's are divided by the scales.
    value = replace(value, w_scales=(value.w_scales / scales).astype(F32))
    levels = int(low.min()), int(high.max())
    found, steps = in_levels(state, value, F32(1), (levels[0] - zero, levels[1] - zero))
    name = requantized(
        state.builder,
        sum_of(state, found),
        Requantize(zero, *levels),
        steps,
        F32(1),
        node.output,
        value.origin,
    )
    if low.min() != low.max() or high.min() != high.max():
        table = np.clip(np.arange(-128, 128), low[:, None], high[:, None]).astype(np.int8)
        stored = state.builder.constant(f"{node.output}/limits", table)
        name = state.builder.node(Lookup(), (name, stored), node.output, node.origin)
    return ByChannel(Integer(name, value.permutation), scales, zeros, zero)


def dequantize_channels(state: State, node: Node) -> ByChannel:
    """The same bytes, by the scales that they were quantised with; or any with one zero point."""
    value, scales, zeros = state.value(node.inputs[0]), *_parameters(state, node)
    operator = node.operator
    assert isinstance(operator, DequantizeLinear)
    along = operator.axis == CHANNELS
    if along and isinstance(value, Integer) and len(np.unique(zeros)) == 1:
        return ByChannel(value, scales, zeros, int(zeros[0]))
    same = along and isinstance(value, ByChannel) and np.array_equal(value.scales, scales)
    if not isinstance(value, ByChannel) or not same or not np.array_equal(value.zeros, zeros):
        raise UnrecognisedError(
            f"an activation with {scales.size} scales; required one, or those that it was "
            "quantised with"
        )
    return value


def limited(state: State, node: Node, value: Integer | ByChannel, limit: Array) -> Value:
    """Bytes that are clipped before they are dequantised, as those of fewer bits are."""
    operator = node.operator
    assert isinstance(operator, Binary)
    if limit.size != 1:
        raise UnrecognisedError(f"{limit.size} limits of bytes; required one")
    tensor = value if isinstance(value, Integer) else value.tensor
    highest = int(limit.reshape(-1)[0]) - 128 * (limit.dtype == np.uint8)
    moved = 0 if isinstance(value, Integer) else (value.zero_point - value.zeros)[:, None]
    pick = np.maximum if operator.function is BinaryFunction.MAX else np.minimum
    table = np.clip(pick(np.arange(-128, 128), highest + moved), -128, 127).astype(np.int8)
    if table.ndim == 2 and (table == table[0]).all():
        table = table[0].copy()
    stored = state.builder.constant(f"{node.output}/table", table)
    name = state.builder.node(Lookup(), (tensor.name, stored), node.output, node.origin)
    tensor = replace(tensor, name=name)
    return tensor if isinstance(value, Integer) else replace(value, tensor=tensor)


def of_depthwise(value: ByChannel, w: RealConstant, groups: int) -> tuple[Real, RealConstant]:
    """Operands of a depthwise convolution, all scales with the weights."""
    count = len(value.scales)
    if groups != count:
        raise UnrecognisedError(
            f"reads an activation with {count} scales, in {groups} groups; required a group for "
            "each channel"
        )
    outputs = len(w.values)
    scales = np.broadcast_to(w.scales, (outputs,)) * np.repeat(value.scales, outputs // count)
    zeros = np.broadcast_to(w.zero_points, (outputs,))
    weights = replace(w, scales=scales.astype(F32), zero_points=zeros, axis=0)
    return Real(value.tensor, F32(1), value.zero_point), weights


def _parameters(state: State, node: Node) -> tuple[Array, Array]:
    """float32 scales and zero points of int8, int64."""
    scales = state.constant(node.inputs[1], "scale").astype(F32).reshape(-1)
    zeros = state.constant(node.inputs[2], "zero point").reshape(-1)
    if not np.isfinite(scales).all() or (scales <= 0).any():
        raise UnrecognisedError("scales must be finite and above 0")
    if zeros.dtype not in (np.int8, np.uint8):
        raise UnrecognisedError(f"quantises to {zeros.dtype}; required int8 or uint8")
    shift = 128 * (zeros.dtype == np.uint8)
    return scales, np.broadcast_to(zeros.astype(np.int64) - shift, scales.shape)
