"""Normalisation of rows in integers, as an accelerator computes it."""

from collections.abc import Sequence
from math import isqrt

import numpy as np

from dovetail.isa.frozen import frozen
from dovetail.isa.requantize import WIDE_LIMIT
from dovetail.isa.rows import over_root

from ....dtypes import DType
from ...types import TensorType
from ..protocol import Array, Opaque, require, require_inputs
from .rules import F32, check, is_int8, require_bytes

__all__ = [
    "MOST_EPSILON",
    "MOST_SHIFT",
    "WIDE_SHIFT",
    "RowNorm",
    "deviation_steps",
    "wide_steps",
]

MOST_EPSILON = (1 << 23) - 1
"""Largest number that may be added to a sum of squares: an immediate of the accelerator."""
MOST_SQUARES = (1 << 31) - 1 - MOST_EPSILON
LEAST_STEPS, MOST_STEPS = 4, 128
WIDE_SHIFT, MOST_SHIFT = WIDE_LIMIT.bit_length() - 1, 31


def deviation_steps(channels: int, about: int | None = None) -> int:
    """The steps of a byte in which deviations from the mean are squared: as fine as their sum, an
    int32, and their 16 bits allow; 0 where rows are too long.

    about: a zero point in place of the mean.  All of a row may be as far from it as a byte can,
    where at most half of one is 127.5 from the mean.
    """
    most = 255 if about is None else 2 * max(127 - about, about + 128)
    steps = (2 * isqrt(MOST_SQUARES // channels) - 1) // most
    return min(steps, MOST_STEPS) if steps >= LEAST_STEPS else 0


def wide_steps(channels: int) -> float:
    """Steps in 1 of a normalised row: so many that no element of a row is beyond ``WIDE_LIMIT``."""
    return float(WIDE_LIMIT / np.sqrt(channels))


@frozen
class RowNorm(Opaque):
    """Rows less their mean, over their deviation, then scaled and moved channel by channel:
    int8[..., C] and parameters int32[C] and float32[C] to int8.

    With ``k = deviation_steps(C, about)`` and ``w = 2^19``:

        v = C * x - sum(x)
        d = rint(float32(v) * float32(k / C))
        z = clip(rint(float32(v) * over_root(sum(d * d), epsilon, k / C, 19)), -w, w)
        y = clip(rint(float32(z + bias) * scale) + zero_point)

    so that z is ``(x - mean) / deviation`` in steps of ``sqrt(C) / w``.  With ``about`` no mean is
    taken away, but this zero point: ``v = x - about``, and ``k`` in place of ``k / C``; so z is
    ``v`` over the root of the mean of its squares, in the same steps.

    With a ``share`` the mean of squares is a byte, and what is divided by is one of another
    quantisation, as where a model quantises inside its formula.  Then there is a table int8[256]:

        r = clip(rint(float32(sum(d * d)) * share), 0, 255)
        z = clip(rint(float32(v) * over_root(table[255 - r], epsilon, k / C, shift)), -w, w)

    epsilon: of the sum of squares, or of what the table holds.  Source of ``over_root``:
    ``dovetail.isa.rows``.

    Beside ONNX Runtime's floats at most one step off, and in at most 0.3 % of the bytes of random
    rows of a deviation of 2 steps and more; docs/transformers.md says how far others are.
    """

    epsilon: int
    zero_point: int
    about: int | None = None
    share: float = 0.0
    shift: int = WIDE_SHIFT

    def __post_init__(self) -> None:
        check(self, 0 <= self.epsilon <= MOST_EPSILON, f"an epsilon in 0..{MOST_EPSILON}")
        check(self, is_int8(self.zero_point), "a zero point in -128..127")
        check(self, self.share >= 0, "a share of at least 0")
        check(self, 0 <= self.shift <= MOST_SHIFT, f"a shift in 0..{MOST_SHIFT}")
        check(self, self.about is None or is_int8(self.about), "a zero point in -128..127")

    def factor(self, channels: int) -> np.float32:
        """``k / C``, or ``k``."""
        steps = deviation_steps(channels, self.about)
        return F32(steps / (channels if self.about is None else 1))

    def result(self, inputs: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Raises GraphError when it is not given rows of bytes and their parameters, or rows too
        long.
        """
        require_inputs(self, inputs, 4 if self.share else 3)
        x = inputs[0]
        require_bytes(self, x)
        fits = bool(x.shape) and deviation_steps(x.shape[-1], self.about) > 0
        require(self, fits, x, "rows of which a sum of squares is an int32")
        kinds = TensorType(x.shape[-1:], DType.INT32), TensorType(x.shape[-1:], DType.FLOAT32)
        found = f"{inputs[1]} and {inputs[2]}"
        require(self, inputs[1:3] == kinds, found, f"{kinds[0]} and {kinds[1]}")
        if self.share:
            table = TensorType((256,), DType.INT8)
            require(self, inputs[3] == table, f"{inputs[3]}", f"a table {table}")
        return (x,)

    def evaluate(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Step by step, as the formula."""
        x, bias, scale = inputs[:3]
        channels = x.shape[-1]
        factor = self.factor(channels)
        wide = x.reshape(-1, channels).astype(np.int32)
        if self.about is None:
            v = channels * wide - wide.sum(axis=1, keepdims=True, dtype=np.int32)
        else:
            v = wide - self.about
        d = np.rint(v.astype(F32) * factor).astype(np.int32)
        rows = len(wide)
        more = np.full(rows, self.epsilon, np.int32)
        squares = d * d
        if self.share:
            total = squares.sum(axis=1, dtype=np.int32).astype(F32)
            byte = np.clip(np.rint(total * F32(self.share)), 0, 255).astype(np.int32)
            squares = inputs[3][255 - byte, None].astype(np.int32)
        over = over_root(squares, more, np.full(rows, factor), self.shift)
        z = np.clip(np.rint(v.astype(F32) * over[:, None]), -WIDE_LIMIT, WIDE_LIMIT)
        moved = (z.astype(np.int32) + bias).astype(F32) * scale
        y = np.clip(np.rint(moved) + self.zero_point, -128, 127)
        return (y.astype(np.int8).reshape(x.shape),)
