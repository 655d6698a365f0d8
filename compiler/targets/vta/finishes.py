"""The two ways to requantise, as expressions of loop programs."""

from dovetail.isa.requantize import FIXED_BIAS_BITS, FIXED_MOST_LEFT

from ...dtypes import DType
from ...loops.expressions import (
    Binary,
    BinaryFunction,
    Cast,
    Constant,
    Expr,
    Load,
    Select,
    Unary,
    UnaryFunction,
)

__all__ = ["requantized", "requantized_fixed", "scaled_by", "scaled_fixed"]

SHL, SHR = BinaryFunction.SHL, BinaryFunction.SHR
MIN, MAX = BinaryFunction.MIN, BinaryFunction.MAX


def requantized(value: Expr, bias: Load, scale: Load, zero_point: int, low: int, high: int) -> Expr:
    """``clip(rint(float32(value + bias) * scale) + zero_point, low, high)``, int8."""
    total = Binary(BinaryFunction.ADD, value, bias)
    scaled = Unary(UnaryFunction.RINT, Cast(DType.FLOAT32, total) * scale)
    return _clipped(scaled + float(zero_point), low, high)


def scaled_by(value: Expr, scale: Load, zero_point: int, low: int, high: int) -> Expr:
    """``clip(rint(float32(value) * scale) + zero_point, low, high)``, int8."""
    scaled = Unary(UnaryFunction.RINT, Cast(DType.FLOAT32, value) * scale)
    return _clipped(scaled + float(zero_point), low, high)


def requantized_fixed(
    value: Expr, word: Load, multiplier: Load, zero_point: int, low: int, high: int
) -> Expr:
    """``dovetail.isa.requantize.requantize_fixed``, int8.

    word: int32, bias and shift as PAR holds them.  multiplier: int32, 0 or more.
    """
    return _clipped(scaled_fixed(value, word, multiplier) + zero_point, low, high)


def scaled_fixed(value: Expr, word: Load, multiplier: Load) -> Expr:
    """The rounded int64 before the zero point, in a form that simplifying leaves as it is."""
    bias = _of(SHR, _of(SHL, word, 32 - FIXED_BIAS_BITS), 32 - FIXED_BIAS_BITS)
    shift = Cast(DType.INT64, _of(BinaryFunction.AND, _of(SHR, word, FIXED_BIAS_BITS), 31))
    left, right = (_of(MAX, each, 0) for each in (FIXED_MOST_LEFT - shift, shift - FIXED_MOST_LEFT))
    total = Cast(DType.INT64, Binary(BinaryFunction.ADD, value, bias))
    negative = total < 0
    doubled = Binary(SHL, Binary(MAX, total, 0 - total), left)
    product = _of(MIN, doubled, (1 << 24) - 1) * Cast(DType.INT64, multiplier)
    halves = (Constant(half, DType.INT64) for half in ((1 << 30) - 1, 1 << 30))
    whole = _of(SHR, product + Select(negative, *halves), 31)
    unit = Binary(SHL, Constant(1, DType.INT64), right)
    rounded = Binary(SHR, whole + _of(SHR, unit, 1), right)
    return Select(negative, 0 - rounded, rounded)


def _of(function: BinaryFunction, value: Expr, number: int) -> Expr:
    return Binary(function, value, Constant(number, value.dtype))


def _clipped(value: Expr, low: int, high: int) -> Expr:
    for function, limit in ((MAX, low), (MIN, high)):
        number = float(limit) if value.dtype is DType.FLOAT32 else limit
        value = Binary(function, value, Constant(number, value.dtype))
    return Cast(DType.INT8, value)
