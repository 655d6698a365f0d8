"""Long sums in parts that a GPU computes at a time: how many parts are fastest.

A kernel computes the parts of all sums, and a second one adds them up:

    microseconds = those of the parts + LAUNCH + bytes of the parts / EXCHANGED

Parts are multiples of ``STEP`` elements, so that rows of operands stay aligned in memory.
"""

from collections.abc import Callable
from math import gcd

from dovetail.isa.frozen import replace

from .estimate import Work

__all__ = ["best_parts"]

STEP = 32
PARTS = (2, 3, 4, 6, 8, 9, 12, 16)
LAUNCH, EXCHANGED = 2.0, 4e6
"""Microseconds of one kernel more, and bytes a microsecond that one writes and the next one reads;
measured on an H100, 2026-11-26.
"""
SUM_BYTES = 4
GAIN = 0.9
"""Parts are worth it where they take at most so much of the time without."""


def best_parts(work: Work, time: Callable[[Work], float], least: int = STEP) -> tuple[int, float]:
    """The number of parts of at least ``least`` elements, often one, and their microseconds.

    time: microseconds of products, by an estimate.
    """

    def cost(parts: int) -> float:
        depth = work.depth // parts
        whole = gcd(work.whole, depth) if work.whole else 0
        own = time(replace(work, count=work.count * parts, depth=depth, whole=whole))
        results = work.count * work.rows * work.columns
        return own + LAUNCH + 2 * SUM_BYTES * parts * results / EXCHANGED

    whole = time(work)
    fit = [each for each in PARTS if work.depth % (each * STEP) == 0 and work.depth >= each * least]
    best, fastest = min(
        ((each, cost(each)) for each in fit), key=lambda e: e[1], default=(1, whole)
    )
    return (best, fastest) if fastest < GAIN * whole else (1, whole)
