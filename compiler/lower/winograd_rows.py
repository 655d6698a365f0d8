"""How many rows of Winograd's tiles go through all three steps at a time.

As many as move least data: each block of rows reads all weights, and what V and M (see
``winograd``) have beyond the second-level cache is written to the next one and read back.  Threads
share the blocks, if the weights are few enough for each of them to read them all, or else the steps
of one block.
"""

from math import prod

from ..graph.operators.integer_winograd import IntegerWinograd
from ..graph.operators.winograd import Winograd
from ..graph.types import TensorType
from ..graph.winograd import INPUT_CYCLES, OUTPUT_CYCLES

__all__ = ["rows_together"]

CACHE_BYTES, MOST_BYTES = 640 << 10, 4 << 20
"""Of V and M together: what the second-level cache holds of them, and what the next one may."""
NEAREST_BYTES = 1 << 20
"""Of the second-level cache, weights included."""

PRODUCTS, NEAR_BYTES, WRITTEN_BYTES = 27, 20, 4
"""In a cycle: multiply-adds; bytes from the nearest caches; bytes another core has written."""


def rows_together(
    operator: Winograd | IntegerWinograd,
    x: TensorType,
    u: TensorType,
    element_bytes: tuple[int, int],
    threads: int,
) -> int:
    """How many of the operator's rows of tiles.

    x, u: the types of its operands.  element_bytes: of V and of M.
    """
    (v, m), (down, across) = element_bytes, operator.tiles
    (_, blocks, *_, lanes), outputs, width = x.shape, u.shape[1], u.shape[4]
    row_bytes = operator.size**2 * across * (v * blocks * lanes + m * outputs * width)
    weight_bytes = v * u.elements
    if threads == 1:
        return _rows_at_a_time(down, row_bytes, weight_bytes)
    rate = 4 // v * PRODUCTS
    row_work = operator.size**2 * across * prod(u.shape[1:]) / rate
    row_work += across * (
        blocks * INPUT_CYCLES[operator.tile] + outputs * OUTPUT_CYCLES[operator.tile]
    )
    return _rows_of_threads(down, row_bytes, weight_bytes, row_work, threads)


def _rows_at_a_time(rows: int, row_bytes: int, weight_bytes: int) -> int:
    """Of ``rows`` rows of tiles; row_bytes: of V and M of one."""

    def moved(blocks: int) -> float:
        own = -(-rows // blocks) * row_bytes
        beyond = max(0.0, 1 - CACHE_BYTES / own)
        return blocks * weight_bytes + 2 * beyond * rows * row_bytes

    least = min(rows, -(-rows * row_bytes // MOST_BYTES))
    blocks = min(range(least, rows + 1), key=moved)
    return -(-rows // blocks)


def _rows_of_threads(
    rows: int, row_bytes: int, weight_bytes: int, row_work: float, threads: int
) -> int:
    """The same for blocks that threads share, or all rows, for threads that share the steps.

    row_work: cycles of one row.  Counts the cycles of the thread with most work.
    """

    def beyond(own_bytes: float) -> float:
        return 2 * max(0.0, own_bytes - CACHE_BYTES)

    def apart(blocks: int) -> float:
        each = -(-rows // blocks)
        whole, rest = divmod(rows, each)
        own = each * -(-whole // threads)
        if rest and whole % threads == 0:
            own += rest
        block_bytes = each * row_bytes
        near = NEAR_BYTES * (2 if weight_bytes + block_bytes <= NEAREST_BYTES else 1)
        moved = weight_bytes / near + beyond(block_bytes) / NEAR_BYTES
        return own * row_work + -(-own // each) * moved

    both = rows * row_bytes / threads
    together = (rows * row_work + weight_bytes / NEAR_BYTES) / threads
    together += beyond(both) / NEAR_BYTES + both / 2 / WRITTEN_BYTES
    least = max(2, -(-rows * row_bytes // MOST_BYTES))
    blocks = min(range(least, rows + 1), key=apart, default=rows)
    if rows == 1 or (both <= MOST_BYTES and together < apart(blocks)):
        return rows
    return -(-rows // blocks)
