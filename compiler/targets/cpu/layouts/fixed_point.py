"""TensorFlow Lite's integer layers on raised bytes, in int32 and int64.

    RequantizeFixed(x, m, s)  ->  clip(rounded_shift(int32((int64(x << s) * m + 2**30) >> 31)))

A sum, a product or a mean is that of the raised bytes less their offset.
"""

from typing import assert_never

import numpy as np

from ....dtypes import DType
from ....graph.ir import Array
from ....graph.operators.elementwise import Binary, BinaryFunction, Where
from ....graph.operators.integer.fixed_point import (
    AddFixed,
    AverageFixed,
    MultiplyFixed,
    RequantizeFixed,
)
from ....graph.operators.windows import WindowFunction, WindowReduce
from .raised_bytes import RAISE, RaisedBytes

__all__ = ["average", "pair", "requantize"]


def requantize(
    new: RaisedBytes, x: str, operator: RequantizeFixed, multiplier: Array, shift: Array
) -> str:
    """x: int32, or float32 of whole numbers.

    multiplier, shift: of the shape in which they belong to the elements of ``x``.
    """
    if new.builder.types[x].dtype != DType.INT32:
        x = new.cast(x, DType.INT32)
    result = _scaled(new, x, multiplier, shift)
    return _limited(new, result, operator.zero_point, operator.low, operator.high)


def pair(new: RaisedBytes, a: str, b: str, operator: AddFixed | MultiplyFixed) -> str:
    """A sum or a product of two tensors of raised bytes."""
    left = new.centred(a, operator.a_zero_point, DType.INT32)
    right = new.centred(b, operator.b_zero_point, DType.INT32)
    match operator:
        case AddFixed():
            one = 1 << operator.left_shift
            left = _scaled_by(
                new,
                new.binary(BinaryFunction.MUL, left, one),
                operator.a_multiplier,
                operator.a_shift,
            )
            right = _scaled_by(
                new,
                new.binary(BinaryFunction.MUL, right, one),
                operator.b_multiplier,
                operator.b_shift,
            )
            total = new.binary(BinaryFunction.ADD, left, right)
        case MultiplyFixed():
            total = new.binary(BinaryFunction.MUL, left, right)
        case _:
            assert_never(operator)
    result = _scaled_by(new, total, operator.multiplier, operator.shift)
    return _limited(new, result, operator.zero_point, operator.low, operator.high)


def average(new: RaisedBytes, x: str, operator: AverageFixed) -> str:
    """The means of an image in NCHW: halves go away from zero before a division that truncates."""
    height, width = new.builder.types[x].shape[2:]
    counts = operator.counts((1, height, width, 1))
    top, left, bottom, right = operator.pads
    pool = WindowReduce(
        *((2, 3), operator.kernel, operator.strides, (1, 1), ((top, bottom), (left, right))),
        WindowFunction.ADD,
    )
    shift = RAISE if operator.unsigned else 0
    total = new.emit(pool, new.centred(x, -shift, DType.INT32))
    count = _constant(new, counts, DType.INT32)
    half = _constant(new, counts // 2, DType.INT32)
    if not operator.unsigned:
        below = new.binary(BinaryFunction.LT, total, 0)
        half = new.emit(Where(), below, _constant(new, -(counts // 2), DType.INT32), half)
    mean = new.emit(Binary(BinaryFunction.DIV), new.binary(BinaryFunction.ADD, total, half), count)
    return _limited(new, mean, -shift, operator.low, operator.high)


def _scaled_by(new: RaisedBytes, x: str, multiplier: int, shift: int) -> str:
    return _scaled(new, x, np.asarray(multiplier), np.asarray(shift))


def _scaled(new: RaisedBytes, x: str, multiplier: Array, shift: Array) -> str:
    """``scaled`` of int32, as int32; each multiplier and shift may belong to a channel."""
    if (shift > 0).any():
        left = _constant(new, np.maximum(shift, 0), DType.INT32)
        x = new.emit(Binary(BinaryFunction.SHL), x, left)
    product = new.binary(
        BinaryFunction.MUL, new.cast(x, DType.INT64), _constant(new, multiplier, DType.INT64)
    )
    high = new.binary(BinaryFunction.SHR, new.binary(BinaryFunction.ADD, product, 1 << 30), 31)
    narrow = new.cast(high, DType.INT32)
    right = np.maximum(-shift, 0)
    if not right.any():
        return narrow
    sign = new.binary(BinaryFunction.SHR, narrow, 31)
    if not right.all():
        mask = _constant(new, np.where(right > 0, -1, 0), DType.INT32)
        sign = new.binary(BinaryFunction.AND, sign, mask)
    half = _constant(new, (np.int64(1) << right) >> 1, DType.INT32)
    nudged = new.binary(BinaryFunction.ADD, new.binary(BinaryFunction.ADD, narrow, half), sign)
    return new.binary(BinaryFunction.SHR, nudged, _constant(new, right, DType.INT32))


def _constant(new: RaisedBytes, value: Array, dtype: DType) -> str:
    """A constant, of no dimension where all elements are equal."""
    first = np.asarray(value).reshape(-1)[:1]
    same = value.size and (value == first).all()
    return new.constant(np.asarray(first[0] if same else value).astype(dtype.numpy))


def _limited(new: RaisedBytes, x: str, zero_point: int, low: int, high: int) -> str:
    """``clip(x + zero_point, low, high)`` of int32, raised."""
    x = new.binary(BinaryFunction.MAX, x, low - zero_point)
    x = new.binary(BinaryFunction.MIN, x, high - zero_point)
    return new.cast(new.moved(x, zero_point + RAISE), DType.UINT8)
