"""Normalisation of all elements of an image in integers, as an accelerator computes it."""

from collections.abc import Sequence

import numpy as np

from dovetail.isa.frozen import frozen
from dovetail.isa.requantize import WIDE_LIMIT
from dovetail.isa.rows import over_root

from ...types import TensorType
from ..protocol import Array, Opaque, require, require_inputs
from .norm import MOST_EPSILON, WIDE_SHIFT
from .rules import F32, check, is_int8, require_bytes

__all__ = ["MOST_ELEMENTS", "NormSteps", "TensorNorm"]

MOST_ELEMENTS = (1 << 16) - 2
"""Elements of an image, so few that parts of their sums of squares have 16 bits."""

MOST_VARIANCE = 127.5**2
MOST_FACTOR = 1 << 11


@frozen
class NormSteps:
    """The whole numbers by which sums over ``elements`` bytes are taken apart.

    factor: the variance of bytes counts in steps of ``1 / (factor * elements)``, so fine that the
    largest there is, and an epsilon, are an int32.
    part: sums of squares are whole numbers of it, of 16 bits, and a rest of as many.
    mean: sums are whole numbers of it, of 14 bits; it is 4 and up, and even.  The square of what is
    left counts for nothing.
    """

    elements: int

    @property
    def mean(self) -> int:
        """At least ``elements / 65``; a multiple of 4."""
        return 4 * -(-self.elements // 260)

    @property
    def part(self) -> int:
        """A power of two above ``elements / 2``."""
        return int(1 << (self.elements // 2).bit_length())

    @property
    def factor(self) -> int:
        """1 and up."""
        most = int(((1 << 31) - 1 - MOST_EPSILON) / (MOST_VARIANCE * self.elements))
        return min(most, MOST_FACTOR // self.mean)

    @property
    def sum_scale(self) -> np.float32:
        """The scale of a sum, so that its product with its parts of ``mean`` is twice its square's
        part of the variance.
        """
        return F32(2 * self.factor * self.mean / self.elements)

    @property
    def mean_scale(self) -> np.float32:
        """The scale from so scaled sums to parts of ``mean``."""
        return F32(self.elements / (2 * self.factor * self.mean**2))


@frozen
class TensorNorm(Opaque):
    """All elements of each image less their mean, over their deviation: int8[N, ...] to int8.

    With ``n`` elements in an image, at most ``MOST_ELEMENTS``, and ``q``, ``K``, ``D`` the factor,
    part and mean of ``NormSteps(n)``, in int32 and float32:

        S = sum(x)                          T = sum(x * x)
        a = rint(-T / K)                    r = -T - K * a
        m = rint(rint(-S * (2 * q * D / n)) * (n / (2 * q * D * D)))
        w = rint((-D / 2 * m - S) * (2 * q * D / n))
        t = -q * K * a - q * r - m * w
        y = clip(rint((n * x - S) * over_root(t, epsilon, scale, 19)) + zero_point)

    so that ``q * T`` is exact, ``m * w`` is ``q * S * S / n``, and ``t`` is the variance in steps
    of ``1 / (q * n)``.  epsilon: in the same steps.  Source of ``over_root``:
    ``dovetail.isa.rows``.
    """

    epsilon: int
    zero_point: int
    scale: float

    def __post_init__(self) -> None:
        check(self, 0 <= self.epsilon <= MOST_EPSILON, f"an epsilon in 0..{MOST_EPSILON}")
        check(self, is_int8(self.zero_point), "a zero point in -128..127")
        tiny = float(np.finfo(F32).tiny)
        check(self, tiny <= self.scale < np.inf, "a positive scale, not subnormal")

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when it is not given bytes, or images of too many."""
        (x,) = require_inputs(self, inputs, 1)
        require_bytes(self, x)
        fits = x.rank > 1 and 0 < x.elements // max(x.shape[0], 1) <= MOST_ELEMENTS
        require(self, fits, x, f"images of at most {MOST_ELEMENTS} elements")
        return (x,)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Step by step, as the formula."""
        (x,) = inputs
        wide = x.reshape(len(x), -1).astype(np.int32)
        steps = NormSteps(wide.shape[1])
        n, q, part, mean = steps.elements, steps.factor, steps.part, steps.mean
        less = -wide.sum(axis=1, dtype=np.int32)
        squares = -(wide * wide).sum(axis=1, dtype=np.int32)
        a = _rounded(squares, F32(1 / part))
        rest = _rounded(squares - part * a, F32(1))
        m = _rounded(_rounded(less, steps.sum_scale), steps.mean_scale)
        w = _rounded(less - mean // 2 * m, steps.sum_scale)
        spread = -q * part * a - q * rest - m * w
        images = len(x)
        over = over_root(
            spread[:, None],
            np.full(images, self.epsilon, np.int32),
            np.full(images, self.scale, F32),
            WIDE_SHIFT,
        )
        y = np.rint((n * wide + less[:, None]).astype(F32) * over[:, None]) + self.zero_point
        return (np.clip(y, -128, 127).astype(np.int8).reshape(x.shape),)


def _rounded(value: Array, scale: np.float32) -> Array:
    """To 20 bits."""
    wide = np.clip(np.rint(value.astype(F32) * scale), -WIDE_LIMIT, WIDE_LIMIT)
    return wide.astype(np.int32)
