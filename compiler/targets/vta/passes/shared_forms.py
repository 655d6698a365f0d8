"""Tables of channels that all are one zero point's: only scales differ.

    table[c, x + 128] = clip(rint(float32(sign[c] * (x - z)) * scale[c]) + zero_point, low, high)

for all 256 values of x.  So are products of a quantised tensor with a constant for each channel, as
the weights of a normalisation.  Such a form needs no bias a channel.
"""

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

__all__ = ["Shared", "find_shared"]

X = np.arange(-128, 128)


@frozen
class Shared:
    """signs: int8[C], 1 or -1.  scales: float32[C].  zero_point: of what is read, ``added``: to
    results, which are clipped to the limits.
    """

    zero_point: int
    added: int
    signs: NDArray[np.int8]
    scales: NDArray[np.float32]
    low: int
    high: int


def find_shared(table: NDArray[np.int8]) -> Shared | None:
    """The form of ``table``, int8[C, 256]; None when there is none that is exact."""
    wanted, low, high = table.astype(np.int64), int(table.min()), int(table.max())
    # Where x is the zero point, all channels are the same.
    for column in np.flatnonzero((wanted == wanted[0]).all(axis=0)).tolist():
        added = int(wanted[0, column])
        if low < added < high and (found := _with_zero(wanted, int(X[column]), added, low, high)):
            return found
    return None


def _with_zero(
    wanted: NDArray[np.int64], zero_point: int, added: int, low: int, high: int
) -> Shared | None:
    x, rest = X - zero_point, wanted - added
    others = x != 0
    # What each result is at least, and at most, over x.
    bounds = (
        np.where(wanted > low, rest - 0.5, -np.inf),
        np.where(wanted < high, rest + 0.5, np.inf),
    )
    with np.errstate(divide="ignore"):
        ends = np.stack([bound[:, others] / x[others] for bound in bounds])
    least, most = ends.min(axis=0).max(axis=1), ends.max(axis=0).min(axis=1)
    slopes = (least + most) / 2
    if not np.isfinite(slopes).all() or (slopes == 0).any():
        return None
    signs, scales = np.sign(slopes).astype(np.int8), np.abs(slopes).astype(np.float32)
    total = (signs[:, None] * x).astype(np.float32) * scales[:, None]
    if not np.array_equal(np.clip(np.rint(total) + added, low, high), wanted):
        return None
    return Shared(zero_point, added, signs, scales, low, high)
