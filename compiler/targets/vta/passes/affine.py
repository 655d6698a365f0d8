"""Tables of channels as one product, one sum and one requantisation of each channel.

    table[x + 128] = clip(rint(float32(tap * x + bias) * scale), low, high)  for all 256 values of x

That is what the vector unit makes of a depthwise convolution of one tap.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

__all__ = ["Affine", "find_affine", "find_blocks", "joined"]

X = np.arange(-128, 128)
NEAR = 3
"""Biases tried around the middle of those that seem to fit."""
SLOPES = 24
"""Slopes tried, of those that fit."""
STEEPEST = 1024.0
STEPS = 80
"""Steps of the search for a slope: each leaves 0.62 of the range."""
GOLDEN = (5**0.5 - 1) / 2
CLOSE = 1e-6
"""Offsets that may be this far apart and still be one."""
AT_ONCE = 16
"""Channels whose slopes are found together, or those of a block."""

Form = tuple[int, int, np.float32]
"""Tap, bias and scale of a channel."""


@frozen
class Affine:
    """A form for each channel: int8[C], int32[C], float32[C]; the limits of all."""

    taps: NDArray[np.int8]
    biases: NDArray[np.int32]
    scales: NDArray[np.float32]
    low: int
    high: int


def find_affine(table: NDArray[np.int8]) -> Affine | None:
    """The form of ``table``, int8[C, 256]; None when a channel has none that is exact."""
    (found,) = find_blocks(table, len(table))
    return found


def find_blocks(table: NDArray[np.int8], lanes: int) -> list[Affine | None]:
    """The form of each block of ``lanes`` channels, with the limits of all; None where a channel
    of the block has none that is exact.
    """
    low, high = int(table.min()), int(table.max())
    step = max(1, AT_ONCE // lanes) * lanes
    found: list[Affine | None] = []
    for first in range(0, len(table), step):
        found += _known(table[first : first + step].tobytes(), low, high, lanes)
    return found


@lru_cache(maxsize=1 << 12)
def _known(rows: bytes, low: int, high: int, lanes: int) -> list[Affine | None]:
    """As ``find_blocks``, of some channels; a graph is prepared more than once."""
    wanted = np.frombuffer(rows, np.int8).reshape(-1, len(X)).astype(np.int64)
    slopes = _slopes(wanted, low, high)
    return [
        _block(wanted[first : first + lanes], slopes[first : first + lanes], low, high)
        for first in range(0, len(wanted), lanes)
    ]


def _block(
    wanted: NDArray[np.int64], slopes: NDArray[np.float64], low: int, high: int
) -> Affine | None:
    found: list[Form] = []
    for row, slope in zip(wanted, slopes.tolist(), strict=True):
        form = _find(row, slope, low, high)
        if form is None:
            return None
        found.append(form)
    taps, biases, scales = zip(*found, strict=True)
    return Affine(
        np.array(taps, np.int8), np.array(biases, np.int32), np.array(scales, np.float32), low, high
    )


def joined(forms: Sequence[Affine]) -> Affine:
    """The channels of all ``forms``, which have the same limits."""
    taps, biases, scales = (
        np.concatenate([getattr(each, name) for each in forms])
        for name in ("taps", "biases", "scales")
    )
    return Affine(taps, biases, scales, forms[0].low, forms[0].high)


def _find(wanted: NDArray[np.int64], best: float, low: int, high: int) -> Form | None:
    """``best``: the slope that leaves most room."""
    if wanted.min() == wanted.max():
        return 0, int(wanted[0]), np.float32(1)
    least, largest = _offset(wanted, best, low, high)
    if least > largest + CLOSE:
        return None
    form = _with_slope(wanted, best, low, high)
    if form is not None:
        return form
    ends = [_end(wanted, best, far, low, high) for far in (-STEEPEST, STEEPEST)]
    for slope in np.linspace(ends[0], ends[1], SLOPES):
        form = _with_slope(wanted, float(slope), low, high)
        if form is not None:
            return form
    return None


def _end(wanted: NDArray[np.int64], fits: float, far: float, low: int, high: int) -> float:
    """The slope nearest to ``far`` that leaves room, as ``fits`` does."""
    for _ in range(STEPS):
        middle = (fits + far) / 2
        least, largest = _offset(wanted, middle, low, high)
        fits, far = (middle, far) if least <= largest else (fits, middle)
    return fits


def _with_slope(wanted: NDArray[np.int64], slope: float, low: int, high: int) -> Form | None:
    first, last = _offset(wanted, slope, low, high)
    if first > last + CLOSE or slope == 0:
        return None
    middle = (first + last) / 2
    for tap in range(127, 0, -1):
        scale = np.float32(abs(slope) / tap)
        near = round(middle / float(scale)) if scale else 1 << 31
        if abs(near) > 1 << 30:
            continue
        factor = tap if slope > 0 else -tap
        biases = near + np.arange(-NEAR, NEAR + 1)
        total = (factor * X + biases[:, None]).astype(np.float32) * scale
        right = (np.clip(np.rint(total), low, high) == wanted).all(axis=1)
        if right.any():
            return factor, int(biases[np.argmax(right)]), scale
    return None


def _offset(wanted: NDArray[np.int64], slope: float, low: int, high: int) -> tuple[float, float]:
    """The least and the largest offset with which ``slope`` gives ``wanted``."""
    least, largest = _offsets(*_bounds(wanted[None], low, high), np.array([slope]))
    return float(least[0]), float(largest[0])


def _bounds(
    wanted: NDArray[np.int64], low: int, high: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Least and largest value of each result before it is rounded and clipped."""
    least = np.where(wanted > low, wanted - 0.5, -np.inf)
    return least, np.where(wanted < high, wanted + 0.5, np.inf)


def _offsets(
    least: NDArray[np.float64], most: NDArray[np.float64], slopes: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least and the largest offset of each row with its slope; ``_bounds`` of its results."""
    product = slopes[:, None] * X
    return (least - product).max(axis=1), (most - product).min(axis=1)


def _slopes(wanted: NDArray[np.int64], low: int, high: int) -> NDArray[np.float64]:
    """Each row's slope that leaves most room for offsets, which is a concave function of it."""
    bounds = _bounds(wanted, low, high)

    def room(slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        least, largest = _offsets(*bounds, slopes)
        return largest - least

    left, right = np.full(len(wanted), -STEEPEST), np.full(len(wanted), STEEPEST)
    a, b = right - GOLDEN * (right - left), left + GOLDEN * (right - left)
    of_a, of_b = room(a), room(b)
    for _ in range(STEPS):
        low_half = of_a >= of_b
        left, right = np.where(low_half, left, a), np.where(low_half, b, right)
        part = GOLDEN * (right - left)
        new = np.where(low_half, right - part, left + part)
        of_new = room(new)
        a, b = np.where(low_half, new, b), np.where(low_half, a, new)
        of_a, of_b = np.where(low_half, of_new, of_b), np.where(low_half, of_a, of_new)
    return (left + right) / 2
