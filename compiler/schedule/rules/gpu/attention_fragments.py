"""Attention on tensor cores, whose scores and weights stay in registers; see the step ``Attend``.

A block of 128 rows has four warps of 32 rows each where two such blocks at a time fill a large GPU,
and eight of 16 rows each where one does.  It reads keys and values less often than smaller blocks
do; these are used where it would leave too much of the GPU idle.  Where each score has a mask of
its own, which takes registers, a warp has 16 rows.  Keys and values of the next 64 columns are
copied while a block computes.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from math import prod

from ....errors import ScheduleError
from ....loops.ir import Store
from ....loops.traverse import loads, variables, walk
from ...steps.schedule import Schedule
from .choice import DEFAULT, Choice

__all__ = ["in_fragments"]

MOST = 128
"""Elements of a row of queries, and of values: more would not fit a thread's registers."""
FEW = 64
"""With at most so many of both, a warp may have 32 rows, and 64 columns go together; ..."""
COLUMNS, FEW_COLUMNS = 64, 32
"""... otherwise 32 columns, and also where there are no more."""
SIDE, MOST_TILES, MOST_WARPS = 16, 2, 8
"""Rows of a tile; tiles of a warp; warps of a block."""
PARTS = 132
"""Multiprocessors of a large GPU, each of which runs blocks at a time."""


def in_fragments(
    schedule: Schedule, loops: Mapping[str, int], choice: Choice = DEFAULT
) -> Schedule:
    """The loops of ``define/attention.py``, whose extents ``loops`` are, by warps.

    Raises ScheduleError where sizes, types or the memory of operands do not suit.
    """
    depth, values = loops.get("k0", 0), loops.get("e2", 0)
    if {"k1", "e4"} & set(loops) or max(depth, values) > MOST:
        raise ScheduleError(f"attention in fragments: depth {depth}, values {values}")
    few = max(depth, values) <= FEW
    together = few and loops["columns0"] * loops["c0"] > FEW_COLUMNS
    columns = COLUMNS if together else FEW_COLUMNS
    if choice.rows:
        return _attended(schedule, choice.parts, choice.rows // SIDE // choice.parts, columns)
    outer = prod(size for name, size in loops.items() if name.startswith("o"))
    rows = loops["rows0"] * loops["r2"]
    wide = few and not _has_masks_of_rows(schedule)
    for tiles, warps in _shapes(lambda size: outer * -(-rows // size), wide):
        with suppress(ScheduleError):
            return _attended(schedule, tiles, warps, columns)
    raise ScheduleError("attention in fragments: the operands do not suit")


def _shapes(blocks: Callable[[int], int], wide: bool) -> Iterator[tuple[int, int]]:
    """Tiles of a warp, and warps, from the best on; blocks: of so many rows; wide: warps may have
    32 rows.
    """
    if wide and _fills(blocks(128), 2 * PARTS):
        yield 2, 4
    if blocks(128) <= PARTS and _fills(blocks(128), PARTS):
        yield 1, 8
    if _fills(blocks(64), PARTS):
        yield 1, 4
    yield 1, 2


def _fills(blocks: int, together: int) -> bool:
    """True if rounds of ``together`` blocks leave at most a quarter of the places empty."""
    return 4 * blocks >= 3 * -(-blocks // together) * together


def _attended(schedule: Schedule, tiles: int, warps: int, columns: int) -> Schedule:
    if not 0 < tiles <= MOST_TILES or not 0 < warps <= MOST_WARPS:
        raise ScheduleError(f"attention by {warps} warps of {tiles} tiles of {SIDE} rows")
    return schedule.attend(tiles, warps, columns).overlap("columns0")


def _has_masks_of_rows(schedule: Schedule) -> bool:
    """True if the mask has an element of its own for each score."""
    return any(
        "r2" in variables(load)
        for stmt in walk(schedule.function.body)
        if isinstance(stmt, Store) and stmt.buffer.name == "score0"
        for load in loads(stmt.value)
    )
