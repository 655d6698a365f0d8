"""Fragments of 16 x 16 elements in the registers of a warp, and what is called for them.

A thread has rows g and g + 8 of each, and two neighbours in each half of their columns
(``targets/gpu/fragments.py``).
"""

from ...dtypes import DType
from ...loops.expressions import Buffer, Constant, Expr, as_index
from ...loops.ir import Invoke, Region, Stmt, Store
from .attend_tiles import Tile

__all__ = [
    "F32",
    "FRAGMENT",
    "GROUP",
    "HALF",
    "QUAD",
    "SIDE",
    "Indices",
    "column_of",
    "fragment_at",
    "pair_at",
    "power_of_two",
    "product_of",
    "zeroed",
]

F32 = DType.FLOAT32
SIDE, GROUP, QUAD, HALF = 16, 8, 4, 2
"""Sides of a fragment; the threads of a warp, by rows and in a row; halves of a side."""
FRAGMENT = (HALF, HALF, HALF)
Indices = tuple[Expr, ...]


def column_of(fragment: Expr, half: Expr, quad: Expr, item: Expr | int) -> Expr:
    """The number of a column in fragments side by side."""
    return fragment * SIDE + half * GROUP + quad * HALF + item


def zeroed(buffer: Buffer, own: Indices, at: Indices) -> Stmt:
    """``buffer[own, at] = 0``."""
    return Store(buffer, (*own, *at), Constant(0.0, F32))


def pair_at(buffer: Buffer, start: Indices) -> Region:
    """Two neighbours."""
    return Region(buffer, start, (*(1 for _ in start[1:]), HALF))


def power_of_two(source: Buffer, start: Indices, target: Buffer, to: Indices) -> Stmt:
    """``target = 2 ** source``."""
    regions = ((source, start), (target, to))
    return Invoke("power_of_two", tuple(Region(each, at, (1,) * len(at)) for each, at in regions))


def fragment_at(buffer: Buffer, warp: Expr, row: Expr, column: Expr) -> Region:
    """The fragment of a warp that is ``row`` fragments down and ``column`` across."""
    nothing = as_index(0)
    start = (warp, nothing, nothing, row, column, nothing, nothing, nothing)
    return Region(buffer, start, (1, GROUP, QUAD, 1, 1, *FRAGMENT))


def product_of(
    factor: Region, tile: Tile, place: tuple[Expr, Expr], sums: Region, *, by_rows: bool
) -> Stmt:
    """A product of a fragment and a part of a tile; place: of the column of scores, and beside.

    by_rows: columns of scores are columns of the result; else they are summed over.
    """
    first, second = reversed(place) if tile.turned else place
    region = Region(tile.buffer, (first * SIDE, second * SIDE), (SIDE, SIDE))
    kind = "rows" if by_rows != tile.turned else "columns"
    return Invoke(f"product_of_{kind}_{tile.buffer.dtype}", (factor, region, sums))
