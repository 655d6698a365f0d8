"""Normalisations of rows and images of bytes: sums of integers, and a scale over their root."""

import numpy as np

from dovetail.isa.requantize import WIDE_LIMIT
from dovetail.isa.rows import (
    ROOT_BITS,
    ROOT_FRACTION_BITS,
    ROOT_GUARD_BITS,
    ROOT_INDEX_BITS,
    ROOT_TABLE,
)

from ....dtypes import DType
from ...ir import Array
from ...operators.elementwise import BinaryFunction, Bitcast
from ...operators.indexing import Gather
from ...operators.integer.norm import WIDE_SHIFT, RowNorm
from ...operators.integer.tensor_norm import NormSteps, TensorNorm
from ...operators.movement import Reshape
from ...operators.reductions import Reduce, ReduceFunction
from .raised_bytes import RaisedBytes

__all__ = ["row_norm", "tensor_norm"]

B = BinaryFunction
MANTISSA_BITS, FLOAT64_BITS, FLOAT64_BIAS = 23, 52, 1023


def row_norm(
    new: RaisedBytes,
    x: str,
    operator: RowNorm,
    bias: Array,
    scale: Array,
    table: Array | None = None,
) -> str:
    """``RowNorm`` of raised bytes, raised."""
    kind = new.builder.types[x]
    size = kind.shape[-1]
    rows = new.emit(Reshape((kind.elements // size, size)), x)
    if operator.about is None:
        wide = new.centred(rows, 0, DType.INT32)
        total = new.emit(Reduce(ReduceFunction.SUM, (1,), True), wide)
        v = new.binary(B.SUB, new.binary(B.MUL, wide, size), total)
    else:
        v = new.centred(rows, operator.about, DType.INT32)
    factor, real = operator.factor(size), new.cast(v, DType.FLOAT32)
    limits = 0, -WIDE_LIMIT, WIDE_LIMIT
    d = new.cast(new.rounded(new.binary(B.MUL, real, factor), *limits), DType.INT32)
    squares = new.emit(Reduce(ReduceFunction.SUM, (1,), True), new.binary(B.MUL, d, d))
    if table is not None:
        share = new.binary(B.MUL, new.cast(squares, DType.FLOAT32), operator.share)
        byte = new.cast(new.rounded(share, 0, 0, 255), DType.INT32)
        squares = new.emit(Gather(0), new.constant(table[::-1].astype(np.int32)), byte)
    total = new.binary(B.MAX, new.moved(squares, operator.epsilon), 1)
    over = _over_root(new, total, factor, operator.shift)
    z = new.cast(new.rounded(new.binary(B.MUL, real, over), *limits), DType.INT32)
    moved = new.cast(new.binary(B.ADD, z, new.constant(bias)), DType.FLOAT32)
    result = new.binary(B.MUL, moved, new.constant(scale))
    bytes_ = new.saturated(result, operator.zero_point, -128, 127)
    return new.emit(Reshape(kind.shape), bytes_)


def tensor_norm(new: RaisedBytes, x: str, operator: TensorNorm) -> str:
    """``TensorNorm`` of raised bytes, raised."""
    kind = new.builder.types[x]
    count, steps = kind.shape[0], NormSteps(kind.elements // kind.shape[0])
    wide = new.centred(new.emit(Reshape((count, steps.elements)), x), 0, DType.INT32)

    def less(values: str) -> str:
        total = new.emit(Reduce(ReduceFunction.SUM, (1,), True), values)
        return new.binary(B.MUL, total, -1)

    def scaled(value: str, scale: np.float32) -> str:
        real = new.binary(B.MUL, new.cast(value, DType.FLOAT32), scale)
        return new.cast(new.rounded(real, 0, -WIDE_LIMIT, WIDE_LIMIT), DType.INT32)

    def times(value: str, factor: int) -> str:
        return new.binary(B.MUL, value, factor)

    sums, squares = less(wide), less(new.binary(B.MUL, wide, wide))
    one, part, factor = np.float32(1), steps.part, -steps.factor
    a = scaled(squares, np.float32(1 / part))
    rest = scaled(new.binary(B.SUB, squares, times(a, part)), one)
    m = scaled(scaled(sums, steps.sum_scale), steps.mean_scale)
    w = scaled(new.binary(B.SUB, sums, times(m, steps.mean // 2)), steps.sum_scale)
    spread = new.binary(B.ADD, times(a, factor * part), times(rest, factor))
    spread = new.binary(B.SUB, spread, new.binary(B.MUL, m, w))
    total = new.binary(B.MAX, new.moved(spread, operator.epsilon), 1)
    over = _over_root(new, total, np.float32(operator.scale), WIDE_SHIFT)
    moved = new.cast(new.binary(B.ADD, times(wide, steps.elements), sums), DType.FLOAT32)
    result = new.binary(B.MUL, moved, over)
    return new.emit(Reshape(kind.shape), new.saturated(result, operator.zero_point, -128, 127))


def _over_root(new: RaisedBytes, total: str, factor: np.float32, shift: int) -> str:
    """``over_root`` of ``dovetail.isa.rows``; total: 1 and up."""

    def shifted(value: str, bits: int) -> str:
        return new.binary(B.SHR, value, bits)

    def low(value: str, bits: int) -> str:
        return new.binary(B.AND, value, (1 << bits) - 1)

    # All bits of an int32 are in a float64's mantissa.
    bits = new.emit(Bitcast(DType.INT64), new.cast(total, DType.FLOAT64))
    exponent = new.moved(shifted(bits, FLOAT64_BITS), -FLOAT64_BIAS)
    fraction_bits = ROOT_INDEX_BITS + ROOT_FRACTION_BITS
    fraction = low(shifted(bits, FLOAT64_BITS - fraction_bits), fraction_bits)
    odd = new.binary(B.SHL, low(exponent, 1), ROOT_INDEX_BITS)
    index = new.binary(B.ADD, odd, shifted(fraction, ROOT_FRACTION_BITS))
    first, less = (
        new.emit(Gather(0), new.constant(np.ascontiguousarray(column)), index)
        for column in ROOT_TABLE.T
    )
    step = new.binary(B.MUL, less, low(fraction, ROOT_FRACTION_BITS))
    exact = new.binary(B.SUB, first, shifted(step, ROOT_FRACTION_BITS))
    given = int(factor.view(np.int32))
    one = 1 << MANTISSA_BITS
    product = new.binary(B.MUL, shifted(exact, ROOT_GUARD_BITS), given & (one - 1) | one)
    high = shifted(product, MANTISSA_BITS + ROOT_BITS)
    significand = new.binary(B.SHR, product, new.moved(high, ROOT_BITS - 1))
    start = (given >> MANTISSA_BITS) + shift - 1
    power = new.binary(B.SUB, new.moved(high, start), shifted(exponent, 1))
    word = new.binary(B.ADD, new.binary(B.SHL, power, MANTISSA_BITS), new.moved(significand, -one))
    return new.emit(Bitcast(DType.FLOAT32), new.cast(word, DType.INT32))
