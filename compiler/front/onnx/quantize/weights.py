"""The int8 weights of every contraction, rounded to the nearest."""

from collections.abc import Mapping

import numpy as np

from ....graph.ir import Array
from ..node import OnnxNode
from .four_bits import four_bit_weights
from .model import FloatModel
from .options import QuantizeOptions
from .plan import CONTRACTIONS, Plan, Role
from .scales import Quantization, Weights, quantize_weights

__all__ = [
    *("channel_axis", "contractions", "dequantized", "float_weights"),
    *("integer_weights", "nearest_weights"),
]


def contractions(model: FloatModel, decided: Plan) -> tuple[OnnxNode, ...]:
    """The nodes that multiply by weights, in order."""
    return tuple(
        node
        for node in model.nodes
        if node.kind in CONTRACTIONS and decided.roles.get(node.outputs[0]) is Role.CONTRACTION
    )


def channel_axis(node: OnnxNode) -> int:
    """The dimension of a contraction's weights that has its output channels."""
    return 1 if node.kind in ("ConvTranspose", "MatMul") else 0


def float_weights(model: FloatModel, node: OnnxNode) -> tuple[Array, Array | None]:
    """Weights, and bias float32[channels] if there is one."""
    weights, bias = model.constants[node.inputs[1]], None
    if node.has(2):
        given = model.constants[node.inputs[2]].reshape(-1)
        bias = np.broadcast_to(given, (weights.shape[channel_axis(node)],))
    return weights, bias


def nearest_weights(
    model: FloatModel,
    decided: Plan,
    scales: Mapping[str, Quantization],
    options: QuantizeOptions,
) -> dict[str, Weights]:
    """By the output of each contraction."""
    found = {}
    for node in contractions(model, decided):
        x_scale = scales[node.inputs[0]].scale
        found[node.outputs[0]] = integer_weights(
            node, *float_weights(model, node), x_scale, options
        )
    return found


def integer_weights(
    node: OnnxNode,
    weights: Array,
    bias: Array | None,
    x_scale: np.float32,
    options: QuantizeOptions,
) -> Weights:
    """Weights and bias of a contraction, each rounded separately."""
    axis = channel_axis(node)
    if options.weight_bits < 8 and weights.shape[1 - axis] > 1:
        return four_bit_weights(weights, bias, x_scale, axis)
    return quantize_weights(weights, bias, x_scale, axis, options.per_channel)


def dequantized(
    weights: Weights, node: OnnxNode, x_scale: np.float32
) -> tuple[Array, Array | None]:
    """float32 weights and bias that int8 and int32 stand for."""
    shape = [1] * weights.integers.ndim
    shape[channel_axis(node)] = -1
    real = weights.integers * weights.scales.reshape(shape)
    if weights.bias is None:
        return real, None
    return real, (weights.bias * (weights.scales.astype(np.float64) * x_scale)).astype(np.float32)
