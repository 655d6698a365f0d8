"""Tables of channels as one product, one sum and one requantisation of each channel.

    table[x + 128] = clip(rint(float32(tap * x + bias) * scale), low, high)  for all 256 values of x

That is what the vector unit makes of a depthwise convolution of one tap.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["Affine", "find_affine"]

X = np.arange(-128, 128)
NEAR = 3
"""Biases tried beside the middle of those that seem to fit."""
SLOPES = 24
"""Slopes tried, of those that fit."""
STEEPEST = 1024.0
STEPS = 80
"""Steps of the search for a slope: each leaves 0.62 of the range."""
GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True)
class Affine:
    """A form for each channel: int8[C], int32[C], float32[C]; the limits of all."""

    taps: NDArray[np.int8]
    biases: NDArray[np.int32]
    scales: NDArray[np.float32]
    low: int
    high: int


def find_affine(table: NDArray[np.int8]) -> Affine | None:
    """The form of ``table``, int8[C, 256]; None when a channel has none that is exact."""
    low, high = int(table.min()), int(table.max())
    found = []
    for row in table:
        form = _known(row.tobytes(), low, high)
        if form is None:
            return None
        found.append(form)
    taps, biases, scales = zip(*found, strict=True)
    return Affine(
        np.array(taps, np.int8), np.array(biases, np.int32), np.array(scales, np.float32), low, high
    )


@lru_cache(maxsize=1 << 15)
def _known(row: bytes, low: int, high: int) -> tuple[int, int, np.float32] | None:
    """A graph is prepared more than once."""
    return _find(np.frombuffer(row, np.int8).astype(np.int64), low, high)


def _find(wanted: NDArray[np.int64], low: int, high: int) -> tuple[int, int, np.float32] | None:
    if wanted.min() == wanted.max():
        return 0, int(wanted[0]), np.float32(1)
    best = _slope(wanted, low, high)
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
        least, largest = _offsets(wanted, middle, low, high)
        fits, far = (middle, far) if least <= largest else (fits, middle)
    return fits


def _with_slope(
    wanted: NDArray[np.int64], slope: float, low: int, high: int
) -> tuple[int, int, np.float32] | None:
    first, last = _offsets(wanted, slope, low, high)
    if first > last + 1e-6 or slope == 0:
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


def _offsets(wanted: NDArray[np.int64], slope: float, low: int, high: int) -> tuple[float, float]:
    """The least and the largest offset with which ``slope`` gives ``wanted``."""
    rest = wanted - slope * X
    least = (rest - 0.5)[wanted > low].max(initial=-np.inf)
    return float(least), float((rest + 0.5)[wanted < high].min(initial=np.inf))


def _slope(wanted: NDArray[np.int64], low: int, high: int) -> float:
    """The slope that leaves most room for offsets; the room is a concave function of it."""

    def room(slope: float) -> float:
        least, largest = _offsets(wanted, slope, low, high)
        return largest - least

    left, right = -STEEPEST, STEEPEST
    a, b = right - GOLDEN * (right - left), left + GOLDEN * (right - left)
    of_a, of_b = room(a), room(b)
    for _ in range(STEPS):
        if of_a >= of_b:
            right, b, of_b = b, a, of_a
            a = right - GOLDEN * (right - left)
            of_a = room(a)
        else:
            left, a, of_a = a, b, of_b
            b = left + GOLDEN * (right - left)
            of_b = room(b)
    return (left + right) / 2
