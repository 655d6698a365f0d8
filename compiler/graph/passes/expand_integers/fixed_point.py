"""TensorFlow Lite's integer layers on raised bytes, in int32 and int64.

    RequantizeFixed(x, m, s)  ->  clip(rounding_shift((int64(x << s) * m + 2**30) >> 31, -s))

Sums, products and means are those of the raised bytes, with their offset subtracted.
"""

from typing import assert_never

from ....dtypes import DType
from ...emitter import Emitter
from ...fixed_point import constant, half_away, scaled
from ...formulas import Term
from ...ir import Array
from ...operators.integer.fixed_point import (
    AddFixed,
    AverageFixed,
    MultiplyFixed,
    RequantizeFixed,
    RequantizeReal,
)
from ...operators.integer.values import WeightedAdd
from ...operators.windows import WindowFunction, WindowReduce
from .raised_bytes import RAISE, RaisedBytes

__all__ = ["average", "pair", "requantize", "requantize_real", "weighted"]


def requantize(
    new: RaisedBytes, x: str, operator: RequantizeFixed, multiplier: Array, shift: Array
) -> str:
    """x: int32, or float32 of whole numbers.

    multiplier, shift: of the shape in which they belong to the elements of ``x``.
    """
    result = scaled(_term(new, x).cast(DType.INT32), multiplier, shift)
    return _limited(result, operator.zero_point, operator.low, operator.high)


def requantize_real(new: RaisedBytes, x: str, operator: RequantizeReal, scale: Array) -> str:
    """x, scale: as of ``requantize``.  Products are limited before they are rounded."""
    product = _term(new, x).cast(DType.FLOAT64) * constant(_term(new, x), scale, DType.FLOAT64)
    zero = operator.zero_point
    limited = product.clip(float(operator.low - zero), float(operator.high - zero))
    return (half_away(limited).cast(DType.INT32) + (zero + RAISE)).cast(DType.UINT8).tensor.name


def pair(new: RaisedBytes, a: str, b: str, operator: AddFixed | MultiplyFixed) -> str:
    """A sum or a product of two tensors of raised bytes."""
    left = _term(new, a).cast(DType.INT32) - (operator.a_zero_point + RAISE)
    right = _term(new, b).cast(DType.INT32) - (operator.b_zero_point + RAISE)
    match operator:
        case AddFixed():
            one = 1 << operator.left_shift
            left = scaled(left * one, operator.a_multiplier, operator.a_shift)
            total = left + scaled(right * one, operator.b_multiplier, operator.b_shift)
        case MultiplyFixed():
            total = left * right
        case _:
            assert_never(operator)
    result = scaled(total, operator.multiplier, operator.shift)
    return _limited(result, operator.zero_point, operator.low, operator.high)


def weighted(new: RaisedBytes, a: str, b: str, operator: WeightedAdd) -> str:
    """A sum in whole numbers, and its product with a scale."""
    left, right = (_term(new, each).cast(DType.INT32) - RAISE for each in (a, b))
    total = left * operator.a_factor + right * operator.b_factor + operator.offset
    rounded = (total.cast(DType.FLOAT32) * operator.scale).rint().clip(-512.0, 512.0)
    return _limited(rounded.cast(DType.INT32), operator.zero_point, operator.low, operator.high)


def average(new: RaisedBytes, x: str, operator: AverageFixed) -> str:
    """The means of an image in NCHW: halves go away from zero before a division that truncates."""
    image = _term(new, x)
    counts = operator.counts((1, *image.shape[2:], 1))
    top, left, bottom, right = operator.pads
    pool = WindowReduce(
        *((2, 3), operator.kernel, operator.strides, (1, 1), ((top, bottom), (left, right))),
        WindowFunction.ADD,
    )
    shift = RAISE if operator.unsigned else 0
    wide = image.cast(DType.INT32)
    if not operator.unsigned:
        wide = wide - RAISE
    total = Term(wide.context, wide.context.emit(pool, wide.tensor))
    half = constant(total, counts // 2, DType.INT32)
    if not operator.unsigned:
        half = (total < 0).where(constant(total, -(counts // 2), DType.INT32), half, DType.INT32)
    mean = (total + half) / constant(total, counts, DType.INT32)
    return _limited(mean, -shift, operator.low, operator.high)


def _term(new: RaisedBytes, name: str) -> Term:
    emitter = Emitter(new.builder, new.origin)
    return Term(emitter, emitter.tensor(name))


def _limited(x: Term, zero_point: int, low: int, high: int) -> str:
    """``clip(x + zero_point, low, high)`` of int32, raised."""
    limited = x.clip(low - zero_point, high - zero_point)
    return (limited + (zero_point + RAISE)).cast(DType.UINT8).tensor.name
