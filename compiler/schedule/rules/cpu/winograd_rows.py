"""Number of rows of Winograd's tiles that go through all three steps at a time.

The number that moves least data: each block of rows reads all weights, and what of V and M (see
``winograd``) does not fit in the second-level cache is written to the next one and read back.
Threads share the blocks, if the weights are few enough for each of them to read them all, or else
the steps of one block.
"""

from dovetail.isa.frozen import frozen

__all__ = ["Tiles", "rows_together"]

CACHE_BYTES, MOST_BYTES = 640 << 10, 4 << 20
"""Bytes of V and M together: what the second-level cache holds of them, and what the next may."""
NEAREST_BYTES = 1 << 20
"""Bytes of the second-level cache, weights included."""

PRODUCTS, NEAR_BYTES, WRITTEN_BYTES = 27, 20, 4
"""In a cycle: multiply-adds; bytes from the nearest caches; bytes another core has written."""


TRANSFORM_CYCLES = {16: (24, 16), 36: (130, 80)}
"""By the places of a tile: cycles of the transforms of its inputs and outputs, 16 channels each."""


@frozen
class Tiles:
    """places: elements of a tile of inputs.  down, across: rows and columns of tiles.

    inputs, outputs: blocks of channels, and how many each has.  element_bytes: of V and of M.
    """

    places: int
    down: int
    across: int
    inputs: tuple[int, int]
    outputs: tuple[int, int]
    element_bytes: tuple[int, int]


def rows_together(tiles: Tiles, threads: int) -> int:
    """Number of the rows of tiles."""
    (v, m), (blocks, lanes), (outputs, width) = tiles.element_bytes, tiles.inputs, tiles.outputs
    row_bytes = tiles.places * tiles.across * (v * blocks * lanes + m * outputs * width)
    weights = blocks * lanes * outputs * width
    weight_bytes = v * tiles.places * weights
    if threads == 1:
        return _rows_at_a_time(tiles.down, row_bytes, weight_bytes)
    rate = 4 // v * PRODUCTS
    first, last = TRANSFORM_CYCLES[tiles.places]
    row_work = tiles.places * tiles.across * weights / rate
    row_work += tiles.across * (blocks * first + outputs * last)
    return _rows_of_threads(tiles.down, row_bytes, weight_bytes, row_work, threads)


def _rows_at_a_time(rows: int, row_bytes: int, weight_bytes: int) -> int:
    """Cost of ``rows`` rows of tiles; row_bytes: V and M of one."""

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
