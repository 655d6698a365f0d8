"""Meaning of VECTOR's ``row``: the parameters of rows that it writes to PAR."""

from itertools import pairwise
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from .requantize import low_bits

__all__ = [
    *("ROOT_BITS", "ROOT_FRACTION_BITS", "ROOT_GUARD_BITS", "ROOT_INDEX_BITS", "ROOT_TABLE"),
    *("inverse_root", "largest_lane", "over_root", "over_sum", "quotient"),
]

ROOT_BITS = 17
"""Bits of an inverse root, its highest always 1."""
ROOT_GUARD_BITS = 3
"""Bits that the table has more."""
ROOT_INDEX_BITS = 7
"""Bits of a number, below its highest, that choose of the table."""
ROOT_FRACTION_BITS = 10
"""The bits below those, which go from one entry to the next."""


def _root_table() -> NDArray[np.int64]:
    steps = 1 << ROOT_INDEX_BITS
    square = steps << 2 * (ROOT_BITS + ROOT_GUARD_BITS)
    rows = []
    for odd in (0, 1):
        roots = [isqrt(square // (steps + step << odd)) for step in range(steps + 1)]
        most = (1 << ROOT_BITS + ROOT_GUARD_BITS) - 1
        rows += [(min(a + 2, most), a - b) for a, b in pairwise(roots)]
    return np.array(rows)


ROOT_TABLE = _root_table()
"""int64[256, 2]: ``2^20 / sqrt(m)`` for ``m = (1 + j / 128) * 2^odd`` in row ``128 * odd + j``, and
what it is more than that of the next ``j``.

2 more than that, so that an inverse root is neither above nor below more often, and rounded.
"""


def inverse_root(total: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """``(r, e)`` with ``1 / sqrt(total) = r * 2^(-17 - e)``, r of 17 bits; total: 1 and up.

    From the table by a line between two entries: at most 2^-16.3 of itself wrong.
    """
    whole = total.astype(np.int64)
    exponent = np.frexp(whole.astype(np.float64))[1].astype(np.int64) - 1
    below = (whole << (31 - exponent)) - (1 << 31)
    fraction = below >> 31 - ROOT_INDEX_BITS - ROOT_FRACTION_BITS
    index = (exponent & 1) << ROOT_INDEX_BITS | fraction >> ROOT_FRACTION_BITS
    first, less = ROOT_TABLE[index, 0], ROOT_TABLE[index, 1]
    rest = fraction & (1 << ROOT_FRACTION_BITS) - 1
    root = first - (less * rest >> ROOT_FRACTION_BITS) >> ROOT_GUARD_BITS
    return root, exponent >> 1


def over_root(
    values: NDArray[np.int32], more: NDArray[np.int32], scale: NDArray[np.float32], shift: int
) -> NDArray[np.float32]:
    """``scale * 2^shift / sqrt(sum of the lanes + more)`` of each row, by ``inverse_root``.

    values: int32[rows, block]; the sum wraps, and below 1 counts as 1.  more: int32[rows], scale:
    float32[rows]; its sign and special values count as in ``quotient``.  The product of significand
    and root keeps 24 bits; the others are cut off.  The exponent is at most that of the largest
    float32.
    """
    total = np.maximum(values.sum(axis=1, dtype=np.int32) + more, 1)
    root, halved = inverse_root(total)
    bits = scale.view(np.uint32).astype(np.int64) & 0x7FFFFFFF
    one = 1 << 23
    product = (bits & (one - 1) | one) * root
    less = product >> 23 + ROOT_BITS == 0
    exponent = np.minimum((bits >> 23) + shift - halved - less, 254)
    significand = product >> ROOT_BITS - less
    result = (exponent << 23) + significand - one
    kept = (bits >> 23 > 0) & (exponent > 0)
    return np.where(kept, result, 0).astype(np.uint32).view(np.float32)


def largest_lane(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """The largest of the low 8 bits (signed) of each row's lanes; values: int32[rows, block]."""
    return low_bits(values, 8).max(axis=1).astype(np.int32)


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
    # 24 bits of the quotient and one more; it is never half way between two of 24.
    twice = (dividend << (24 + less)) // divided
    exponent = (bits >> 23) - (divisor >> 23) + 127 - less
    result = (exponent << 23) + ((twice + 1 >> 1) - one)
    kept = (bits >> 23 > 0) & (exponent > 0)
    return np.where(kept, result, 0).astype(np.uint32).view(np.float32)
