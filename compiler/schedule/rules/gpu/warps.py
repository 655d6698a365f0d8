"""Tiles of products in warps: loops in the order of tensor cores' registers.

Rows of shared memory have ``PADDING_BYTES`` more than they need, so that eight rows which
``ldmatrix`` reads at once lie in different banks.
"""

from dataclasses import dataclass

from ...steps.schedule import Schedule

__all__ = ["PADDING_BYTES", "SIDE", "Nest", "TileShape", "in_registers", "in_warps"]

PADDING_BYTES = 16
GROUP = 32
"""Threads of a warp."""
SIDE = 16
"""Rows and columns of an instruction's result."""


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


def in_warps(
    schedule: Schedule, nest: Nest, tile: TileShape, summed: tuple[str, str] | None = None
) -> Schedule:
    """A nest as loops over warps, instructions, and the parts of an instruction's result.

    summed: the loops over instructions and in them, where the nest is the products' own.
    """
    row, column = nest.row, nest.column
    for whole, factor, outer, inner in (
        (nest.loops[0], tile.warp_rows, row("warp"), row("rows")),
        (row("rows"), SIDE, row("tile"), row("row")),
        (row("row"), 8, row("half"), row("group")),
        (nest.loops[1], tile.warp_columns, column("warp"), column("columns")),
        (column("columns"), SIDE, column("tile"), column("column")),
        (column("column"), 8, column("half"), column("eight")),
        (column("eight"), 2, column("thread"), column("item")),
    ):
        schedule = schedule.split(whole, factor, "exact", outer, inner)
    warps = [row("warp"), column("warp")]
    tiles = [row("tile"), column("tile")]
    if summed is not None:
        parts = [row("half"), row("group"), column("half"), column("thread"), column("item")]
        order = [*warps, summed[0], *tiles, *parts, summed[1]]
    else:
        own = [column("half"), row("half"), column("item")]
        order = [*warps, row("group"), column("thread"), *tiles, *own]
        tiles = [*tiles, *own]
    schedule = schedule.reorder(*order)
    for each in tiles:
        schedule = schedule.unroll(each)
    return schedule


def in_registers(schedule: Schedule, acc: str, tile: TileShape) -> Schedule:
    """The sums of a tile as each thread has them."""
    layout = ((0, tile.warp_rows), (1, SIDE), (2, 8), (4, tile.warp_columns), (5, SIDE), (6, 8))
    return schedule.set_layout(acc, (*layout, (7, 2)), (0, 4, 3, 7, 1, 5, 6, 2, 8))
