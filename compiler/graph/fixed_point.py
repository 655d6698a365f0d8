"""Products by int32 multipliers and shifts as formulas.  Source: TensorFlow Lite's kernels."""

import numpy as np

from ..dtypes import DType
from .formulas import Term
from .ir import Array
from .operators.elementwise import UnaryFunction

__all__ = ["constant", "half_away", "rounding_shift", "scaled"]


def scaled(x: Term, multiplier: Array | int, shift: Array | int) -> Term:
    """``scaled`` of the integer operators, of int32: int32.

    multiplier, shift: of one element or broadcast to ``x``.
    """
    multiplier, shift = np.asarray(multiplier), np.asarray(shift)
    if (shift > 0).any():
        x = x << constant(x, np.maximum(shift, 0), DType.INT32)
    product = x.cast(DType.INT64) * constant(x, multiplier, DType.INT64)
    return rounding_shift(((product + (1 << 30)) >> 31).cast(DType.INT32), np.maximum(-shift, 0))


def rounding_shift(x: Term, amount: Array | int) -> Term:
    """``x / 2**amount``, rounded half away from zero; amount: 0 or more, broadcast to ``x``."""
    amount = np.asarray(amount)
    if not amount.any():
        return x
    sign = x >> (x.dtype.bytes * 8 - 1)
    if not amount.all():
        sign = sign & constant(x, np.where(amount > 0, -1, 0), x.dtype)
    half = constant(x, (np.int64(1) << amount.astype(np.int64)) >> 1, x.dtype)
    return (x + half + sign) >> constant(x, amount, x.dtype)


def half_away(x: Term) -> Term:
    """The nearest whole numbers of floats, halves away from zero: C's ``round``."""
    whole = x.unary(UnaryFunction.TRUNC)
    return whole + ((x - whole) * 2.0).unary(UnaryFunction.TRUNC)


def constant(like: Term, value: Array, dtype: DType) -> Term:
    """A constant in the same graph, of no dimension where all elements are equal."""
    first = value.reshape(-1)[:1]
    if value.size and (value == first).all():
        value = first[0]
    return like.constant(value, dtype)
