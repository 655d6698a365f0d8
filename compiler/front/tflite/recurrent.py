"""Converters of recurrent layers, written out step by step; weights may be bytes.

States begin with zeros in every run.  Source: TensorFlow Lite, ``lstm_eval.cc``, ``svdf.h``,
``rnn``.
"""

import numpy as np

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...graph.fixed_point import scaled
from ...graph.formulas import Term, concatenate, einsum
from .hybrid import hybrid_dense
from .integer_lstm import IntegerLstm
from .node import Converter, Node
from .quantization import dequantised
from .quantized import limits_of, quantize_multiplier
from .schema import Quantization

__all__ = ["RECURRENT"]


def _activated(node: Node, x: Term) -> Term:
    match node.attribute("fused_activation_function"):
        case 0:
            return x
        case 1:
            return x.maximum(0.0)
        case 3:
            return x.clip(0.0, 6.0)
        case 4:
            return x.tanh()
        case number:
            raise node.unsupported(f"activation {number}")


def _product(node: Node, x: Term, place: int) -> Term:
    """``x @ weights.T``, of the weights at ``place``."""
    weights = node.term(place)
    if weights.dtype == DType.INT8:
        return hybrid_dense(node, x, place)
    return einsum([(x, [0, 1]), (weights, [2, 1])], [0, 2], x.dtype)


def _real(node: Node, place: int) -> Term:
    """An operand as floats."""
    x = node.term(place)
    return dequantised(node, x, node.scale(place)) if x.dtype == DType.INT8 else x


def _require_floats(node: Node) -> None:
    """Raise UnsupportedOperatorError unless all operands but weights of bytes are floats."""
    for place, each in enumerate(node.inputs):
        if each is None or each.dtype == DType.FLOAT32:
            continue
        if not place or each.dtype != DType.INT8 or node.info(place).quantization is None:
            raise node.unsupported(f"an operand of {each.dtype}")


@frozen
class _Lstm:
    """The operands of a long short-term memory; gates are numbered input, forget, cell, output."""

    node: Node

    def gate(self, number: int, x: Term, hidden: Term, cell: Term) -> Term:
        """A gate before its activation."""
        node = self.node
        total = _product(node, x, 1 + number) + _product(node, hidden, 5 + number)
        peephole = 9 + (number if number < 2 else 2)
        if number != 2 and node.optional(peephole) is not None:
            total = total + cell * _real(node, peephole)
        scale = node.optional(20 + number)
        if scale is not None:
            centred = total - total.mean(1, keep=True)
            deviation = ((centred * centred).mean(1, keep=True) + 1e-8).sqrt()
            total = centred / deviation * scale
        bias = node.optional(12 + number)
        return total if bias is None else total + bias

    def step(self, x: Term, hidden: Term, cell: Term) -> tuple[Term, Term]:
        """The next output and cell."""
        node = self.node
        forget = self.gate(1, x, hidden, cell).sigmoid()
        if node.optional(1) is None:
            entry = 1.0 - forget
        else:
            entry = self.gate(0, x, hidden, cell).sigmoid()
        cell = forget * cell + entry * _activated(node, self.gate(2, x, hidden, cell))
        limit = float(node.attribute("cell_clip", 0.0))
        if limit > 0:
            cell = cell.clip(-limit, limit)
        result = self.gate(3, x, hidden, cell).sigmoid() * _activated(node, cell)
        if node.optional(16) is not None:
            result = _product(node, result, 16)
            if node.optional(17) is not None:
                result = result + node.term(17)
            limit = float(node.attribute("proj_clip", 0.0))
            if limit > 0:
                result = result.clip(-limit, limit)
        return result, cell


def convert_lstm(node: Node) -> Term:
    """One step of a long short-term memory; x: [N, K]."""
    if node.attribute("kernel_type"):
        raise node.unsupported("the basic kernel")
    x, hidden, cell = node.term(0), node.term(18), node.term(19)
    if x.dtype == DType.INT8:
        wide = (each.cast(DType.INT32) for each in (x, hidden, cell))
        return IntegerLstm(node).step(*wide)[0].cast(DType.INT8)
    _require_floats(node)
    return _Lstm(node).step(x, hidden, cell)[0]


def convert_sequence_lstm(node: Node) -> Term:
    """All steps; x: [N, T, K], or [T, N, K] if ``time_major``."""
    hidden, cell = node.term(18), node.term(19)
    layer: _Lstm | IntegerLstm = _Lstm(node)
    axis = 0 if node.attribute("time_major") else 1
    steps, results = _steps(node, axis), []
    if node.term(0).dtype == DType.INT8:
        layer = IntegerLstm(node)
        hidden, cell, *steps = (each.cast(DType.INT32) for each in (hidden, cell, *steps))
    else:
        _require_floats(node)
    for x in steps:
        hidden, cell = layer.step(x, hidden, cell)
        results.append(hidden.unsqueeze(axis))
    return concatenate(results, axis).cast(node.term(0).dtype)


def _steps(node: Node, axis: int) -> list[Term]:
    x = node.term(0)
    node.require(x.rank == 3 and x.shape[axis] > 0, "3 dimensions and a step")
    rest = (x.shape[1 - axis], x.shape[2])
    return [x.slice(axis, n, n + 1).reshape(*rest) for n in range(x.shape[axis])]


def _rnn_step(node: Node, x: Term, hidden: Term) -> Term:
    total = _product(node, x, 1) + _product(node, hidden, 2) + node.term(3)
    return _activated(node, total)


def convert_rnn(node: Node) -> Term:
    """``act(x @ w.T + h @ r.T + b)``."""
    _require_floats(node)
    return _rnn_step(node, node.term(0), node.term(4))


def convert_sequence_rnn(node: Node) -> Term:
    """All steps; x: [N, T, K], or [T, N, K] if ``time_major``."""
    _require_floats(node)
    hidden, results = node.term(4), []
    axis = 0 if node.attribute("time_major") else 1
    for x in _steps(node, axis):
        hidden = _rnn_step(node, x, hidden)
        results.append(hidden.unsqueeze(axis))
    return concatenate(results, axis)


def convert_svdf(node: Node) -> Term:
    """Features of the last steps, weighted by how long ago they were.

    x: [N, K], weights: [F, K] and [F, memory], state: [N, F * memory], F = units * rank.
    """
    if node.term(0).dtype == DType.INT8:
        return _svdf_of_bytes(node)
    _require_floats(node)
    result = _remembered(node, _product(node, node.term(0), 1), _real(node, 2))
    if node.optional(3) is not None:
        result = result + node.term(3)
    return _activated(node, result)


def _remembered(node: Node, new: Term, times: Term) -> Term:
    """The sums of each unit's filters over the state and what is ``new``, [N, F]."""
    (filters, memory), count = times.shape, new.shape[0]
    rank = node.attribute("rank", 1)
    node.require(rank > 0 and filters % rank == 0, f"filters of rank {rank}")
    old = node.term(4).reshape(count, filters, memory).slice(2, 1, memory).cast(new.dtype)
    weighted = (concatenate([old, new.reshape(count, filters, 1)], 2) * times).sum(2)
    return weighted.reshape(count, filters // rank, rank).sum(2)


def _svdf_of_bytes(node: Node) -> Term:
    """Features in int16, sums in int32."""
    scales = [node.scale(place) for place in (0, 1, 2, 4)]
    x, features, times, state = scales
    wide = node.term(0).cast(DType.INT32) - x.zero_point
    weights = node.term(1).cast(DType.INT32)
    total = einsum([(wide, [0, 1]), (weights, [2, 1])], [0, 2], DType.INT32)
    first = _float_product(x, features) / state.scale
    new = scaled(total, *quantize_multiplier(first)).clip(*limits_of(DType.INT16))
    result = _remembered(node, new, node.term(2).cast(DType.INT32))
    if node.optional(3) is not None:
        result = result + node.term(3)
    last = node.result_scale()
    factors = quantize_multiplier(_float_product(state, times) / last.scale)
    moved = scaled(result, *factors) + last.zero_point
    return moved.clip(*limits_of(DType.INT8)).cast(DType.INT8)


def _float_product(a: Quantization, b: Quantization) -> float:
    return float(np.float32(a.scale) * np.float32(b.scale))


RECURRENT: dict[str, Converter] = {
    "LSTM": convert_lstm,
    "RNN": convert_rnn,
    "SVDF": convert_svdf,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": convert_sequence_lstm,
    "UNIDIRECTIONAL_SEQUENCE_RNN": convert_sequence_rnn,
}
