"""Products of floats with weights of bytes: activations are quantised as the model runs.

Source: TensorFlow Lite, ``SymmetricQuantizeFloats`` and ``AsymmetricQuantizeFloats``.
"""

import numpy as np

from ...dtypes import DType
from ...graph.fixed_point import half_away
from ...graph.formulas import Term, einsum
from ...graph.operators.contractions import Convolution
from .node import Node

__all__ = ["hybrid_convolution", "hybrid_dense", "is_hybrid"]


def is_hybrid(node: Node) -> bool:
    """True if activations are floats and weights quantised."""
    return node.term(0).dtype == DType.FLOAT32 and node.term(1).dtype == DType.INT8


def _symmetric(x: Term) -> tuple[Term, Term]:
    """Rows in -127..127 as int32, and their scales, float32[rows, 1]; x: float32[rows, size]."""
    largest = x.abs().max(-1, keep=True)
    empty = largest.equal(0.0)
    inverse = 127.0 / empty.where(1.0, largest, x.dtype)
    steps = half_away(x * inverse).clip(-127.0, 127.0)
    return steps.cast(DType.INT32), empty.where(1.0, largest / 127.0, x.dtype)


def _asymmetric(x: Term) -> tuple[Term, Term]:
    """Rows less their zero points as int32, and their scales; as ``_symmetric``."""
    wide = x.cast(DType.FLOAT64)
    low = (-((-wide).max(-1, keep=True))).minimum(0.0)
    high = wide.max(-1, keep=True).maximum(0.0)
    empty = low.equal(high)
    scale = empty.where(1.0, (high - low) / 255.0, DType.FLOAT64)
    below, above = low / scale, high / scale
    nearer = (below.abs() + 128.0) < (above.abs() + 127.0)
    zero = nearer.where(-below + -128.0, -above + 127.0, DType.FLOAT64)
    zero = half_away(zero.clip(-128.0, 127.0)).cast(DType.FLOAT32)
    zero = empty.where(0.0, zero, DType.FLOAT32)
    narrow = scale.cast(DType.FLOAT32)
    steps = half_away(x * (1.0 / narrow) + zero).clip(-128.0, 127.0)
    return (steps - zero).cast(DType.INT32), narrow


def _weight_scales(node: Node, outputs: int, place: int = 1) -> Term:
    scales = node.scale(place).scales
    node.require(len(scales) in (1, outputs), f"one scale of weights, or {outputs}")
    return node.constant(np.broadcast_to(np.asarray(scales), (outputs,)), DType.FLOAT32)


def hybrid_dense(node: Node, rows: Term, place: int = 1) -> Term:
    """``rows @ weights.T`` of floats; rows: float32[N, K], weights at ``place``: int8[O, K]."""
    weights = node.term(place)
    chosen = _asymmetric if node.attribute("asymmetric_quantize_inputs") else _symmetric
    steps, scale = chosen(rows)
    total = einsum([(steps, [0, 1]), (weights.cast(DType.INT32), [2, 1])], [0, 2], DType.INT32)
    return total.cast(DType.FLOAT32) * (_weight_scales(node, weights.shape[0], place) * scale)


def hybrid_convolution(node: Node, operator: Convolution, weights: Term, symmetric: bool) -> Term:
    """Sums of products of floats, NHWC; weights: int8 in the operator's order."""
    x = node.term(0)
    rows = x.reshape(x.shape[0], -1)
    steps, scale = (_symmetric if symmetric else _asymmetric)(rows)
    image = steps.reshape(*x.shape).transpose(0, 3, 1, 2)
    total = node.emit(operator, image, weights.cast(DType.INT32)).transpose(0, 2, 3, 1)
    scales = _weight_scales(node, weights.shape[0])
    return total.cast(DType.FLOAT32) * scales * scale.reshape(x.shape[0], 1, 1, 1)
