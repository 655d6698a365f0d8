"""The long short-term memory of bytes, whose gates and cells are int16.

Source: TensorFlow Lite, ``lstm_eval.cc``, the form of int8 with int16 states.
"""

from math import frexp

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...graph.fixed_point import rounding_shift, scaled
from ...graph.formulas import Term, einsum
from ...graph.ir import Array
from .arithmetic import inverse_root, scaled_by
from .gates import sigmoids, tangents
from .node import Node
from .quantized import limits_of, quantize_multiplier
from .schema import Quantization

__all__ = ["IntegerLstm"]

GATE_BITS = 3
"""Integer bits of a gate before its function: its scale is 2**-12."""
CELL, HIDDEN = 2, 4


@frozen
class IntegerLstm:
    """The operands of a layer; gates are numbered input, forget, cell, output."""

    node: Node

    @property
    def cell_bits(self) -> int:
        """Integer bits of the cell, whose scale is a power of two."""
        scale = self.node.scale(19).scale
        fraction, power = frexp(scale)
        bits = power - 1 + 15
        self.node.require(fraction == 0.5 and 0 <= bits <= 6, "a cell's scale of 2**-15..2**-9")
        return bits

    def step(self, x: Term, hidden: Term, cell: Term) -> tuple[Term, Term]:
        """The next output, int8, and cell, int16, as int32; so are operands."""
        node, bits = self.node, self.cell_bits
        forget = self.gate(1, x, hidden, cell)
        coupled = node.optional(1) is None
        entry = forget * -1 + 32767 if coupled else self.gate(0, x, hidden, cell)
        new = rounding_shift(entry * self.gate(CELL, x, hidden, cell), 15 + bits)
        cell = _sixteen(_wrapped(rounding_shift(forget * cell, 15)) + _wrapped(new))
        limit = float(node.attribute("cell_clip", 0.0))
        if limit > 0:
            steps = int(min(max(limit / node.scale(19).scale, -32768.0), 32767.0))
            cell = cell.clip(-steps, steps)
        shown = _looked_up(node, cell, tangents(bits))
        product = self.gate(3, x, hidden, cell) * shown
        return self.result(product), cell

    def gate(self, number: int, x: Term, hidden: Term, cell: Term) -> Term:
        """A gate after its function, without integer bits."""
        node, bias = self.node, self.node.optional(12 + number)
        normalised = node.optional(20 + number) is not None
        unit = self.between(number).scale if normalised else 2.0**-12
        total = _sixteen(
            self.product(x, 1 + number, node.scale(0), None if normalised else bias, unit)
        )
        total = _sixteen(self.product(hidden, 5 + number, node.scale(18), None, unit) + total)
        peephole = 9 + (number if number < 2 else 2)
        if number != CELL and node.optional(peephole) is not None:
            real = node.scale(19).scale * node.scale(peephole).scale / unit
            seen = cell * node.term(peephole).cast(DType.INT32)
            total = _sixteen(scaled(seen, *quantize_multiplier(real)) + total)
        if normalised:
            total = self.normalised(number, total)
        table = tangents(GATE_BITS) if number == CELL else sigmoids(GATE_BITS)
        return _looked_up(node, total, table)

    def normalised(self, number: int, total: Term) -> Term:
        """Rows less their mean, over their deviation, times a factor for each, and a bias."""
        node, place, size = self.node, 20 + number, total.shape[1]
        wide, scale = total.cast(DType.INT64), node.scale(place).scale
        mean = wide.sum(1, keep=True) * 1024 / size
        squares = (wide * wide).sum(1, keep=True) * ((1 << 20) // size)
        variance = (squares - mean * mean) / (1 << 20)
        variance = (variance < 1).where(max(1, int(10000 * scale)), variance, DType.INT64)
        root = inverse_root(variance, variance * 0 + 1)
        found = scaled_by(wide * 1024 - mean, *root) * node.term(place).cast(DType.INT64)
        bias = node.optional(12 + number)
        if bias is not None:
            found = found + bias.cast(DType.INT64)
        near = (found > 0).where(found + 512, found - 512, DType.INT64) / 1024
        multiplier, shift = quantize_multiplier(scale)
        return _sixteen(scaled(near.cast(DType.INT32), multiplier, shift + 12))

    def product(
        self, x: Term, place: int, scale: Quantization, bias: Term | None, unit: float
    ) -> Term:
        """``x @ weights.T + bias`` in units of ``unit``; x: with its zero point."""
        weights = self.node.term(place).cast(DType.INT32)
        operands = [(x - scale.zero_point, [0, 1]), (weights, [2, 1])]
        total = einsum(operands, [0, 2], DType.INT32)
        if bias is not None:
            total = total + bias
        real = self.node.scale(place).scale * scale.scale / unit
        return scaled(total, *quantize_multiplier(real))

    def result(self, product: Term) -> Term:
        """The output of ``product``, whose scale is 2**-30."""
        node, state = self.node, self.node.scale(18)
        hidden = self.between(HIDDEN)
        factors = quantize_multiplier(2.0**-30 / hidden.scale)
        found = (scaled(product, *factors) + hidden.zero_point).clip(*limits_of(DType.INT8))
        if node.optional(16) is None:
            return found
        total = self.product(found, 16, hidden, node.optional(17), state.scale)
        result = (total + state.zero_point).clip(*limits_of(DType.INT8))
        limit = float(node.attribute("proj_clip", 0.0))
        if limit > 0:
            steps = int(min(max(limit / state.scale, -128.0), 127.0))
            result = result.clip(-steps, steps)
        return result

    def between(self, number: int) -> Quantization:
        """How an intermediate tensor is quantised."""
        places = self.node.operation.intermediates
        self.node.require(len(places) > number, f"{number + 1} intermediate tensors")
        found = self.node.tensors[places[number]].quantization
        if found is None or not min(found.scales) > 0:
            raise self.node.unsupported("an intermediate tensor without a scale above 0")
        return found


def _sixteen(x: Term) -> Term:
    return x.clip(*limits_of(DType.INT16))


def _wrapped(x: Term) -> Term:
    return x.cast(DType.INT16).cast(DType.INT32)


def _looked_up(node: Node, x: Term, table: Array) -> Term:
    """x: of int16's range."""
    return node.constant(table, DType.INT32).take(x.cast(DType.INT64) + 32768, 0)
