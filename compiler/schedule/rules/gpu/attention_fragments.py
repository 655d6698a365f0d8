"""Attention on tensor cores, whose scores and weights stay in registers; see the step ``Attend``.

A warp has 32 rows of a block's 128.  Where such blocks would be too few for a GPU, or each score
has a mask of its own, which takes registers, it has 16 of 64 or 32.  Keys and values of the next 64
columns are copied while a block computes.
"""

from collections.abc import Mapping
from math import prod

from ....errors import ScheduleError
from ....loops.ir import Store
from ....loops.traverse import loads, variables, walk
from ...steps.schedule import Schedule

__all__ = ["in_fragments"]

MOST = 128
"""Elements of a row of queries, and of values: more would not fit a thread's registers."""
FEW = 64
"""With at most so many of both a warp has 32 rows, and 64 columns go together."""
COLUMNS = (64, 32)
SHAPES = ((2, 4), (1, 4), (1, 2))
"""Tiles of 16 rows of a warp, and warps."""
SIDE = 16
BLOCKS = 132
"""Parts of a large GPU; ..."""
AT_ONCE = 2 * BLOCKS
"""... each has two of the largest blocks at a time, which are chosen where they fill it."""


def in_fragments(schedule: Schedule, loops: Mapping[str, int]) -> Schedule:
    """The loops of ``define/attention.py``, whose extents ``loops`` are, by warps.

    Raises ScheduleError where sizes, types or the memory of operands do not suit.
    """
    depth, values = loops.get("k0", 0), loops.get("e2", 0)
    if {"k1", "e4"} & set(loops) or max(depth, values) > MOST:
        raise ScheduleError(f"attention in fragments: depth {depth}, values {values}")
    few = max(depth, values) <= FEW
    outer = prod(size for name, size in loops.items() if name.startswith("o"))
    rows = loops["rows0"] * loops["r2"]

    def blocks(tiles: int, warps: int) -> int:
        return outer * -(-rows // (SIDE * tiles * warps))

    large, medium, small = SHAPES
    shape = medium if blocks(*medium) >= BLOCKS else small
    together = -(-blocks(*large) // AT_ONCE) * AT_ONCE
    if few and 4 * blocks(*large) >= 3 * together and not _has_masks_of_rows(schedule):
        shape = large
    return schedule.attend(*shape, COLUMNS[0 if few else 1]).overlap("columns0")


def _has_masks_of_rows(schedule: Schedule) -> bool:
    """Whether elements are read for each score."""
    return any(
        "r2" in variables(load)
        for stmt in walk(schedule.function.body)
        if isinstance(stmt, Store) and stmt.buffer.name == "score0"
        for load in loads(stmt.value)
    )
