"""The int8 weights of every contraction, rounded to the nearest."""

from collections.abc import Mapping

import numpy as np

from ....graph.ir import Array
from ..node import OnnxNode
from .four_bits import GROUP, four_bit_weights
from .model import FloatModel
from .options import QuantizeOptions
from .plan import CONTRACTIONS, Plan, Role
from .scales import Quantization, Weights, quantize_weights

__all__ = [
    *("channel_axis", "contractions", "dequantized", "float_weights"),
    *("integer_weights", "nearest_weights", "shared_inputs"),
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
    shapes: Mapping[str, tuple[int, ...]],
    options: QuantizeOptions,
) -> dict[str, Weights]:
    """By the output of each contraction.  shapes: of every tensor."""
    found = {}
    for node in contractions(model, decided):
        x_scale = scales[node.inputs[0]].scale
        found[node.outputs[0]] = integer_weights(
            node, *float_weights(model, node), x_scale, options, shared_inputs(model, shapes, node)
        )
    return found


def shared_inputs(model: FloatModel, shapes: Mapping[str, tuple[int, ...]], node: OnnxNode) -> int:
    """Inputs of a contraction that share a factor, where its weights have 4 bits.

    Where they are the rows of products of activations, too narrow for a block of lanes (several
    queries for each head of keys), a block has one row of each of several products: then all rows
    that these have share it.
    """
    flat = model.producers.get(node.inputs[0])
    if flat is None or flat.kind not in ("Flatten", "Reshape"):
        return GROUP
    rows, shape = model.producers.get(flat.inputs[0]), shapes[flat.inputs[0]]
    if rows is None or rows.kind != "MatMul" or rows.inputs[1] in model.constants:
        return GROUP
    return GROUP * shape[-2] if len(shape) > 2 and shape[-1] < GROUP else GROUP


def integer_weights(
    node: OnnxNode,
    weights: Array,
    bias: Array | None,
    x_scale: np.float32,
    options: QuantizeOptions,
    group: int,
) -> Weights:
    """Weights and bias of a contraction, each rounded separately.  group: as ``shared_inputs``."""
    axis = channel_axis(node)
    if options.weight_bits < 8 and weights.shape[1 - axis] > 1:
        return four_bit_weights(weights, bias, x_scale, axis, group)
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
