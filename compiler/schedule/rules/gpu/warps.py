"""Tiles of products in warps: loops in the order of tensor cores' registers.

An instruction's result has two columns of each of four threads, then two more of each.  Results are
stored fastest where the columns of a thread are side by side.  So in products the rows of the right
operand, which are columns of the result, are put in the order that achieves this (``beside``).

Rows of shared memory have ``PADDING_BYTES`` more than they need, so that eight rows which
``ldmatrix`` reads at once are in different banks.
"""

from collections.abc import Sequence

from dovetail.isa.frozen import frozen

from ...steps.schedule import Schedule

__all__ = [
    "PADDING_BYTES",
    "SIDE",
    "Nest",
    "TileShape",
    "beside",
    "in_registers",
    "in_registers_beside",
    "in_warps",
    "in_warps_beside",
]

PADDING_BYTES = 16
GROUP = 32
"""Threads of a warp."""
SIDE = 16
"""Rows and columns of an instruction's result."""


@frozen
class TileShape:
    """Rows and columns of a block's tile, warps in each direction."""

    rows: int
    columns: int
    row_warps: int
    column_warps: int

    @property
    def warp_rows(self) -> int:
        """Rows of a warp."""
        return self.rows // self.row_warps

    @property
    def warp_columns(self) -> int:
        """Columns of a warp."""
        return self.columns // self.column_warps

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return GROUP * self.row_warps * self.column_warps


@frozen
class Nest:
    """Loops over the rows and columns of a block's tile; ``stems`` and ``end``: of the names of
    what they become.
    """

    loops: tuple[str, str]
    stems: tuple[str, str]
    end: str = ""

    def row(self, part: str) -> str:
        """A part of the loop over rows."""
        return f"{self.stems[0]}.{part}{self.end}"

    def column(self, part: str) -> str:
        """A part of the loop over columns."""
        return f"{self.stems[1]}.{part}{self.end}"


def beside(columns: int) -> tuple[int, ...]:
    """Sizes that cut the columns of a warp, or warpgroup, in parts, threads, tiles, halves, items:
    those of a thread in a part are side by side, 8 of 32, or 4 of 16.
    """
    part = 32 if columns % 32 == 0 else 16
    return part, part // 4, 4, 2


def in_warps(
    schedule: Schedule, nest: Nest, tile: TileShape, summed: tuple[str, str] | None = None
) -> Schedule:
    """A nest as loops over warps, instructions, and the parts of an instruction's result.

    summed: the loops over instructions and in them, where the nest is the products' own.
    """
    columns = (
        (SIDE, "columns", "tile", "column"),
        (8, "column", "half", "eight"),
        (2, "eight", "thread", "item"),
    )
    return _in_warps(schedule, nest, tile, summed, columns, ("tile",))


def in_warps_beside(
    schedule: Schedule, nest: Nest, tile: TileShape, summed: tuple[str, str] | None = None
) -> Schedule:
    """The same, with the columns of a thread side by side."""
    part, thread, pairs, item = beside(tile.warp_columns)
    columns = (
        (part, "columns", "part", "column"),
        (thread, "column", "thread", "own"),
        (pairs, "own", "tile", "pair"),
        (item, "pair", "half", "item"),
    )
    return _in_warps(schedule, nest, tile, summed, columns, ("part", "tile"))


def _in_warps(
    schedule: Schedule,
    nest: Nest,
    tile: TileShape,
    summed: tuple[str, str] | None,
    columns: Sequence[tuple[int, str, str, str]],
    across: tuple[str, ...],
) -> Schedule:
    """columns: how those of a warp are cut.  across: the loops over instructions among them."""
    row, column = nest.row, nest.column
    for whole, factor, outer, inner in (
        (nest.loops[0], tile.warp_rows, row("warp"), row("rows")),
        (row("rows"), SIDE, row("tile"), row("row")),
        (row("row"), 8, row("half"), row("group")),
        (nest.loops[1], tile.warp_columns, column("warp"), column("columns")),
        *((column(a), size, column(b), column(c)) for size, a, b, c in columns),
    ):
        schedule = schedule.split(whole, factor, "exact", outer, inner)
    warps = [row("warp"), column("warp")]
    if summed is not None:
        tiles = [row("tile"), *map(column, across)]
        parts = [row("half"), row("group"), column("half"), column("thread"), column("item")]
        order = [*warps, summed[0], *tiles, *parts, summed[1]]
    else:
        tiles = [row("tile"), row("half"), *map(column, (*across, "half", "item"))]
        order = [*warps, row("group"), column("thread"), *tiles]
    schedule = schedule.reorder(*order)
    for each in tiles:
        schedule = schedule.unroll(each)
    return schedule


def in_registers(schedule: Schedule, acc: str, tile: TileShape) -> Schedule:
    """The sums of a tile as each thread has them."""
    layout = ((0, tile.warp_rows), (1, SIDE), (2, 8), (4, tile.warp_columns), (5, SIDE), (6, 8))
    return schedule.set_layout(acc, (*layout, (7, 2)), (0, 4, 3, 7, 1, 5, 6, 2, 8))


def in_registers_beside(schedule: Schedule, acc: str, right: str, tile: TileShape) -> Schedule:
    """The same, with the columns of a thread side by side, and the tile of the right operand."""
    sizes = tile.warp_columns, *beside(tile.warp_columns)
    rows = ((0, tile.warp_rows), (1, SIDE), (2, 8))
    columns = tuple((axis, size) for axis, size in enumerate(sizes, 4))
    schedule = schedule.set_layout(acc, (*rows, *columns), (0, 4, 3, 6, 1, 5, 7, 8, 2, 9))
    return schedule.set_layout(right, tuple(enumerate(sizes)), (0, 1, 3, 4, 2, 5, 6))
