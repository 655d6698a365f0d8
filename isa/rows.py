"""Meaning of VECTOR's ``row``: the parameters of rows that it writes to PAR."""

import numpy as np
from numpy.typing import NDArray

from .requantize import low_bits

__all__ = ["largest_lane", "over_sum", "quotient"]


def largest_lane(values: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The largest of the low 8 bits (signed) of each row's lanes, negated, and the scale 1.

    values: int32[rows, block].  Results: one of each row.
    """
    most = low_bits(values, 8).max(axis=1).astype(np.int32)
    return -most, np.ones(len(values), np.float32)


def over_sum(
    values: NDArray[np.int32], bias: NDArray[np.int32], scale: NDArray[np.float32]
) -> NDArray[np.float32]:
    """``scale / float32(sum of the lanes + bias)`` of each row; a sum below 1 counts as 1.

    values: int32[rows, block]; the sum wraps.  bias: int32[rows], scale: float32[rows].
    """
    total = values.sum(axis=1, dtype=np.int32) + bias
    return quotient(scale, np.maximum(total, 1))


def quotient(scale: NDArray[np.float32], total: NDArray[np.int32]) -> NDArray[np.float32]:
    """``scale / float32(total)`` in float32, half to even; total: 1 and up.

    Of the scale the sign counts for nothing, every exponent but 0 is that of a normal number, and
    a subnormal is 0, as a quotient that would be subnormal is.
    """
    bits = scale.view(np.uint32).astype(np.int64) & 0x7FFFFFFF
    divisor = total.astype(np.float32).view(np.int32).astype(np.int64)
    one = 1 << 23
    dividend, divided = bits & (one - 1) | one, divisor & (one - 1) | one
    less = dividend < divided
    # 24 bits of the quotient and one more; it never lies half way between two of 24.
    twice = (dividend << (24 + less)) // divided
    exponent = (bits >> 23) - (divisor >> 23) + 127 - less
    result = (exponent << 23) + ((twice + 1 >> 1) - one)
    kept = (bits >> 23 > 0) & (exponent > 0)
    return np.where(kept, result, 0).astype(np.uint32).view(np.float32)
