"""The scale that finishes a product of two tensors, checked on every operand pair.

clip(rint(float32((a - za) * (b - zb) + bias) * scale) + zero_point, low, high)

The operator adds the zero point to the scaled product before it rounds, which matters where the
product is half way between two integers, or nearly.  So neighbours of the exact scale are tried on
every operand pair, each with some or none of the zero point as part of the bias.
"""

from functools import cache
from itertools import product

import numpy as np

from dovetail.isa.frozen import frozen

from ....graph.operators.integer.values import Multiply

__all__ = ["FoundScale", "find_scale"]

STEPS = sorted(range(-8, 9), key=abs)
"""Neighbouring scales that are tried: by how many units in the last place they differ."""
LARGEST_BIAS = 1 << 23
FORMS = 24
"""Parts of the zero point that are tried as part of the bias."""


@frozen
class FoundScale:
    """bias: int32.  zero_point: what is added after rounding.  inexact_pairs: of 65,536, those
    whose result differs.
    """

    bias: int
    scale: np.float32
    zero_point: int
    inexact_pairs: int


@cache
def find_scale(multiply: Multiply) -> FoundScale:
    """The form with the fewest differing pairs; the first, and nearest to exact, of several."""
    values = np.arange(-128, 128, dtype=np.int8)
    (wanted,) = multiply.evaluate((values[:, None], values[None, :]))
    a, b = (
        values.astype(np.int64) - zero for zero in (multiply.a_zero_point, multiply.b_zero_point)
    )
    # A result depends on the product alone.
    products, places, counts = np.unique(a[:, None] * b, return_index=True, return_counts=True)
    wanted = wanted.reshape(-1)[places]
    ratio = np.float32(multiply.ratio)
    best: FoundScale | None = None
    for step, (bias, zero_point) in product(STEPS, _forms(multiply)):
        scale = (ratio.view(np.int32) + np.int32(step)).view(np.float32)
        rounded = np.rint((products + bias).astype(np.float32) * scale).astype(np.float64)
        found = np.clip(rounded + zero_point, multiply.low, multiply.high)
        wrong = int(counts[found != wanted].sum())
        if best is None or wrong < best.inexact_pairs:
            best = FoundScale(bias, scale, zero_point, wrong)
        if not wrong:
            break
    assert best is not None
    return best


def _forms(multiply: Multiply) -> list[tuple[int, int]]:
    """Biases, and the zero points that are left: those that lose least, and none moved."""
    rest = multiply.zero_point - np.arange(-128, 128)
    exact = rest / float(np.float32(multiply.ratio))
    biases = np.rint(exact)
    order = np.lexsort((np.abs(rest), np.abs(exact - biases).round(2)))
    fits = order[np.abs(biases[order]) < LARGEST_BIAS][:FORMS]
    return [(int(biases[place]), int(place) - 128) for place in fits]
