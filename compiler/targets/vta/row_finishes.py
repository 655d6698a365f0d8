"""Parameters of rows, and results of 20 bits, as expressions of loop programs."""

from dovetail.isa.requantize import WIDE_LIMIT
from dovetail.isa.rows import (
    ROOT_BITS,
    ROOT_FRACTION_BITS,
    ROOT_GUARD_BITS,
    ROOT_INDEX_BITS,
)

from ...dtypes import DType
from ...loops.expressions import (
    Binary,
    BinaryFunction,
    Bitcast,
    Cast,
    Constant,
    Expr,
    Load,
    Unary,
    UnaryFunction,
)

__all__ = ["ROOT_SHIFT", "negated", "over_root", "over_sum", "widened"]

ROOT_SHIFT = WIDE_LIMIT.bit_length() - 1
"""The power of two that a scale over a root is multiplied by, so that it scales to 20 bits."""

MANTISSA_BITS, FLOAT64_BITS, FLOAT64_BIAS = 23, 52, 1023
INDICES = float(1 << ROOT_INDEX_BITS)
MOST_ROOT = float(1 << 2 * (ROOT_BITS + ROOT_GUARD_BITS) + ROOT_INDEX_BITS)
"""The square of an inverse root of 1, times ``INDICES``."""


def negated(value: Expr) -> Expr:
    """``-value``, int32."""
    return Constant(0, DType.INT32) - Cast(DType.INT32, value)


def over_sum(total: Expr, bias: Load, scale: Load) -> Expr:
    """``scale / float32(max(total + bias, 1))``, float32."""
    return Binary(BinaryFunction.DIV, scale, Cast(DType.FLOAT32, _at_least_1(total + bias)))


def widened(value: Expr, bias: Load, scale: Load) -> Expr:
    """``clip(rint(float32(value + bias) * scale), -WIDE_LIMIT, WIDE_LIMIT)``, int32."""
    total = Cast(DType.FLOAT32, Binary(BinaryFunction.ADD, value, bias))
    limited: Expr = Unary(UnaryFunction.RINT, total * scale)
    for function, limit in ((BinaryFunction.MAX, -WIDE_LIMIT), (BinaryFunction.MIN, WIDE_LIMIT)):
        limited = Binary(function, limited, Constant(float(limit), DType.FLOAT32))
    return Cast(DType.INT32, limited)


def over_root(total: Expr, epsilon: int, scale: Load, shift: int = ROOT_SHIFT) -> Expr:
    """``scale * 2^shift / sqrt(max(total + epsilon, 1))`` to 16 bits, float32: that of
    ``dovetail.isa.rows``, for scales whose results are normal numbers.
    """
    # All bits of an int32 are in a float64's mantissa.
    counted = Cast(DType.FLOAT64, _at_least_1(total + Constant(epsilon, DType.INT32)))
    bits = Bitcast(DType.INT64, counted)
    exponent = _shifted(bits, FLOAT64_BITS) - FLOAT64_BIAS
    fraction_bits = ROOT_INDEX_BITS + ROOT_FRACTION_BITS
    fraction = _low(_shifted(bits, FLOAT64_BITS - fraction_bits), fraction_bits)
    index, rest = _shifted(fraction, ROOT_FRACTION_BITS), _low(fraction, ROOT_FRACTION_BITS)
    first, second = (_root(index, step, _low(exponent, 1)) for step in (0.0, 1.0))
    most = Constant((1 << ROOT_BITS + ROOT_GUARD_BITS) - 1, DType.INT64)
    start = Binary(BinaryFunction.MIN, first + 2, most)
    root = _shifted(start - _shifted((first - second) * rest, ROOT_FRACTION_BITS), ROOT_GUARD_BITS)
    given, one = Cast(DType.INT64, Bitcast(DType.INT32, scale)), 1 << MANTISSA_BITS
    product = root * (_low(given, MANTISSA_BITS) + one)
    high = _shifted(product, MANTISSA_BITS + ROOT_BITS)
    significand = Binary(BinaryFunction.SHR, product, high + (ROOT_BITS - 1))
    power = _shifted(given, MANTISSA_BITS) + high + (shift - 1) - _shifted(exponent, 1)
    return Bitcast(DType.FLOAT32, Cast(DType.INT32, power * one + significand - one))


def _root(index: Expr, step: float, odd: Expr) -> Expr:
    """The whole part of an inverse root, ``step`` entries of the table behind ``index``."""
    divisor = (Cast(DType.FLOAT64, index) + (INDICES + step)) * (Cast(DType.FLOAT64, odd) + 1.0)
    square = Binary(BinaryFunction.DIV, Constant(MOST_ROOT, DType.FLOAT64), divisor)
    return Cast(DType.INT64, Unary(UnaryFunction.SQRT, square))


def _at_least_1(total: Expr) -> Expr:
    return Binary(BinaryFunction.MAX, total, Constant(1, DType.INT32))


def _shifted(value: Expr, bits: int) -> Expr:
    return Binary(BinaryFunction.SHR, value, Constant(bits, DType.INT64))


def _low(value: Expr, bits: int) -> Expr:
    return Binary(BinaryFunction.AND, value, Constant((1 << bits) - 1, DType.INT64))
