"""Sums of products of int8 and uint8: integer layers, requantised by multipliers and shifts."""

from collections.abc import Callable

import numpy as np

from ...dtypes import DType
from ...graph.bounds import check_accumulator
from ...graph.formulas import Term, concatenate
from ...graph.ir import Array
from ...graph.operators.integer.fixed_point import RequantizeFixed, RequantizeReal
from .node import BYTES, Node
from .quantized import quantize_multiplier, signed_limits, signed_zero

__all__ = [
    "by_image",
    "constant_bias",
    "is_bytes",
    "multipliers",
    "requantized",
    "requantized_once",
    "signed_weights",
]


def signed_weights(node: Node, place: int = 1) -> tuple[Array, int]:
    """Constant weights as int8 and their zero point, 128 less each where they are uint8."""
    found, scale = node.value(place), node.scale(place)
    if str(found.dtype) == DType.UINT8:
        return (found ^ 128).view(np.int8), scale.zero_point - 128
    if str(found.dtype) != DType.INT8:
        raise node.unsupported(f"weights of {found.dtype}")
    node.require(not any(scale.zero_points), "int8 weights with zero points of 0")
    return found, 0


def constant_bias(
    node: Node, place: int, outputs: int, weights: Array, zeros: tuple[int, int]
) -> Array:
    """The bias, or zeros; checked that no sum can overflow.

    zeros: zero points of activations and weights.
    """
    bias = np.zeros(outputs, np.int32)
    if node.optional(place) is not None:
        bias = node.value(place).reshape(-1)
        node.require(bias.shape == (outputs,), f"a bias of {outputs}")
        if str(bias.dtype) != DType.INT32:
            raise node.unsupported(f"a bias of {bias.dtype}")
    if weights.size:
        moved = weights.astype(np.int32) - zeros[1]
        check_accumulator(moved, bias, zeros[0], node.operation.name)
    return bias


def multipliers(node: Node, outputs: int, exact: bool, place: int = 0) -> tuple[Array, Array]:
    """Multiplier and shift of each output channel.

    place: of the input that is multiplied with the weights.  exact: scales of tensors as a whole
    are multiplied in float64, not in float32.
    """
    x, weights, result = node.scale(place), node.scale(1), node.result_scale()
    node.require(len(weights.scales) in (1, outputs), f"one scale of weights, or {outputs}")
    if len(weights.scales) == 1 and not exact:
        product = float(np.float32(x.scale) * np.float32(weights.scale))
        pairs = [quantize_multiplier(product / result.scale)] * outputs
    else:
        scales = weights.scales if len(weights.scales) > 1 else weights.scales * outputs
        pairs = [quantize_multiplier(x.scale * scale / result.scale) for scale in scales]
    found = np.asarray(pairs, np.int32).reshape(outputs, 2)
    return found[:, 0].copy(), found[:, 1].copy()


def requantized(node: Node, total: Term, multiplier: Array, shift: Array) -> Term:
    """int32 sums as bytes of the node's result."""
    dtype = node.result().dtype
    operator = RequantizeFixed(signed_zero(node.result_scale(), dtype), *signed_limits(node))
    factors = (node.constant(each, DType.INT32) for each in (multiplier, shift))
    return node.stored(node.emit(operator, total, *factors), dtype)


def requantized_once(node: Node, total: Term) -> Term:
    """int32 sums of a dense layer as bytes of its result, rounded once."""
    dtype, outputs = node.result().dtype, total.shape[-1]
    x, weights, result = node.scale(0), node.scale(1), node.result_scale()
    node.require(len(weights.scales) in (1, outputs), f"one scale of weights, or {outputs}")
    scales = np.broadcast_to(np.asarray(weights.scales), (outputs,)) * x.scale / result.scale
    operator = RequantizeReal(signed_zero(result, dtype), *signed_limits(node))
    return node.stored(node.emit(operator, total, node.constant(scales, DType.FLOAT64)), dtype)


def by_image(node: Node, x: Term, layer: Callable[[Term], Term]) -> Term:
    """An integer layer, which takes one image, on each of a batch."""
    count = x.shape[0]
    if count == 1:
        return layer(x)
    if not 1 <= count <= 64:
        raise node.unsupported(f"a batch of {count}")
    return concatenate([layer(x.slice(0, place, place + 1)) for place in range(count)], 0)


def is_bytes(node: Node) -> bool:
    """True if the first input is int8 or uint8, and quantised."""
    return node.term(0).dtype in BYTES and node.info(0).quantization is not None
