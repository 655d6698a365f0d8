"""Rows of a depthwise kernel's taps in TAP, cut into groups of three where VECTOR is faster so."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ....graph.operators.integer.products import Conv2d

__all__ = ["GROUPS", "TAP_GROUP", "WINDOW", "TapRow", "cut_row"]

TAP_GROUP = 4
"""Words of TAP that are read together."""

GROUPS = "kg"
"""The loop over the groups of a row of taps."""

WINDOW = 3
"""Taps that VECTOR applies to an element in one cycle, those of neighbouring columns."""


@frozen
class TapRow:
    """One row of taps, as ``groups`` of ``width`` neighbouring columns.

    step: columns from the first of a group to the first of the next; those that two groups have
    count in the first alone, and are 0 in the other.
    """

    groups: int
    width: int
    step: int = 0

    @staticmethod
    def of(extents: Mapping[str, int]) -> "TapRow":
        """The row of a layer whose loops have these iterations."""
        return TapRow(extents.get(GROUPS, 1), extents.get("kx", 1))

    @property
    def words(self) -> int:
        """Words from one row to the next.  A group of up to three is the last but one of four
        words, which are read together.
        """
        return self.groups * max(self.width, TAP_GROUP)

    def places(self, kernel_w: int) -> NDArray[np.intp]:
        """The word of each of ``kernel_w`` taps, from the first group's first on."""
        columns = np.arange(kernel_w)
        group = np.maximum(0, -((self.width - 1 - columns) // max(1, self.step)))
        return columns + group * (self.words // self.groups - self.step)


def cut_row(conv: Conv2d, kernel: tuple[int, int], width: int, depth: int) -> TapRow:
    """The rows of taps of a ``kernel``, cut into groups where VECTOR is faster so.

    It applies a group of three to an element in one cycle; before the first result of a row it
    needs columns that give none.  So a row of five is columns 0 to 2, and 2 to 4 without their
    first: the groups cover the row exactly, because there may be nothing beyond it to read.

    width: results in a row.  depth: words of TAP.  Where it has no room for the taps of two blocks,
    VECTOR waits for LOAD between them, so a quarter of the cycles must go.
    """
    kernel_h, kernel_w = kernel
    whole, step, dilation = TapRow(1, kernel_w), conv.strides[1], conv.dilations[1]
    if kernel_w <= WINDOW or step % dilation:
        return whole
    rest, stride = kernel_w - WINDOW, step // dilation
    groups = next(n for n in range(-(-kernel_w // WINDOW), kernel_w) if rest % (n - 1) == 0)
    lead = -(-WINDOW // stride) - 1
    before, after = kernel_w * width, groups * stride * (width + lead)
    cut = TapRow(groups, WINDOW, rest // (groups - 1))
    words = kernel_h * cut.words
    faster = 4 * after <= 3 * before if 2 * words > depth else after < before
    return cut if faster and words <= depth else whole
