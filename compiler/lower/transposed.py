"""Loops of groups that read across the rows of their input.

    for i in N: for j in M: y[i, j] = x[j, i]

reads a new cache line for each element.  Here both loops are cut into tiles, so that the lines of a
tile are all used before others come; the inner loop is a vector of what lies in different lines.
"""

from collections.abc import Sequence
from dataclasses import replace

from ..define.operand import index
from ..dtypes import DType
from ..loops.expressions import Buffer, Expr, Load, Variable
from ..loops.expressions import Scope as Memory
from ..loops.ir import Allocate, Invoke, Let, LoopKind, Region, Stmt, Store, block, loops
from ..loops.rewrite import substitute
from ..loops.traverse import fold, own_expressions, variables, walk

__all__ = ["tile_transposed"]

TILE = 16
"""Elements along both dimensions: a cache line of 32-bit ones."""

NARROW = 4
"""Elements of rows of the result: channels of an image.  Vectors of them would be mostly empty."""

INTERLEAVE = {3: "interleave_uint8_16x3", 4: "interleave_uint8_16x4"}
"""Intrinsics that make rows of as many bytes of columns."""

SMALLEST = 1 << 10
"""Elements; fewer fit the cache anyhow."""


def tile_transposed(nest: Sequence[tuple[str, int]], body: Stmt) -> Stmt | None:
    """``body`` in the loops of ``nest``, cut into tiles; None where rows are read along."""
    if len(nest) < 2:
        return None
    total = 1
    for _, size in nest:
        total *= size
    last, width = nest[-1]
    across = _across(nest, body)
    if across is None or total < SMALLEST:
        return None
    sizes = dict(nest)
    if width <= NARROW:
        return _interleaved(nest, across, body) or _along(nest, across, body)
    pieces = []
    for row_start, rows, row_tile in _cuts(sizes[across]):
        for start, count, tile in _cuts(width):
            row = index(row_start) + Variable(f"{across}.o") * row_tile + Variable(f"{across}.i")
            place = index(start) + Variable(f"{last}.o") * tile + Variable(f"{last}.i")
            inner = substitute(body, {across: row, last: place})
            inner = loops(((f"{last}.i", tile),), inner, LoopKind.VECTOR)
            inner = loops(((f"{across}.i", row_tile),), inner)
            pieces.append(loops(((f"{across}.o", rows), (f"{last}.o", count)), inner))
    rest = tuple(each for each in nest if each[0] not in (across, last))
    return loops(rest, block(*pieces))


def _along(nest: Sequence[tuple[str, int]], across: str, body: Stmt) -> Stmt:
    """Vectors of what is read along, for each of the few places in a row of the result."""
    (last, width), sizes = nest[-1], dict(nest)
    pieces = []
    for start, count, tile in _cuts(sizes[across]):
        row = index(start) + Variable(f"{across}.o") * tile + Variable(f"{across}.i")
        inner = loops(((f"{across}.i", tile),), substitute(body, {across: row}), LoopKind.VECTOR)
        inner = loops(((last, width),), inner, LoopKind.UNROLLED)
        pieces.append(loops(((f"{across}.o", count),), inner))
    rest = tuple(each for each in nest if each[0] not in (across, last))
    return loops(rest, block(*pieces))


def _interleaved(nest: Sequence[tuple[str, int]], across: str, body: Stmt) -> Stmt | None:
    """As ``_along``; rows of three or four bytes are brought together in registers.

    The last tile reaches back over the one before it.
    """
    (last, width), size = nest[-1], dict(nest)[across]
    store = body
    while isinstance(store, Let):
        store = store.body
    if not isinstance(store, Store) or width not in INTERLEAVE or size < TILE:
        return None
    target, places = store.buffer, tuple(map(Variable, (across, last)))
    if target.dtype != DType.UINT8 or store.indices[-2:] != places:
        return None
    columns = [Buffer(f"{last}.{n}", (TILE,), target.dtype, Memory.REGISTER) for n in range(width)]
    lane = f"{across}.i"
    whole, rest = divmod(size, TILE)

    def tile(start: Expr) -> Stmt:
        statements: list[Stmt] = []
        for number, column in enumerate(columns):
            own = _stored_to(column, Variable(lane), body)
            own = substitute(own, {across: start + Variable(lane), last: index(number)})
            statements.append(loops(((lane, TILE),), own, LoopKind.VECTOR))
        regions = [Region(column, (index(0),), (TILE,)) for column in columns]
        outside = store.indices[:-2]
        shape = (*(1 for _ in outside), TILE, width)
        regions.append(Region(target, (*outside, start, index(0)), shape))
        result = block(*statements, Invoke(INTERLEAVE[width], tuple(regions)))
        for column in columns:
            result = Allocate(column, result)
        return result

    name = f"{across}.o"
    pieces = [loops(((name, whole),), tile(Variable(name) * TILE))]
    if rest:
        pieces.append(tile(index(size - TILE)))
    others = tuple(each for each in nest if each[0] not in (across, last))
    return loops(others, block(*pieces))


def _stored_to(column: Buffer, place: Expr, body: Stmt) -> Stmt:
    """``body``, whose only store goes to ``column``."""
    if isinstance(body, Let):
        return replace(body, body=_stored_to(column, place, body.body))
    assert isinstance(body, Store)
    return Store(column, (place,), body.value)


def _cuts(size: int) -> list[tuple[int, int, int]]:
    """First index, number of tiles and their size: whole tiles, and what is left."""
    whole, rest = divmod(size, TILE)
    cuts = [(0, whole, TILE)] if whole else []
    return [*cuts, (whole * TILE, 1, rest)] if rest else cuts


def _across(nest: Sequence[tuple[str, int]], body: Stmt) -> str | None:
    """The loop that goes along the rows of what is read, if the innermost goes across them."""
    last = nest[-1][0]
    names = [name for name, size in nest[:-1] if size >= TILE]
    found: list[str] = []
    along: list[bool] = []

    def look(node: Expr, below: tuple[None, ...]) -> None:
        if not isinstance(node, Load) or not node.indices:
            return
        *rows, place = node.indices
        used = variables(place)
        if last in used:
            along.append(True)
        elif any(last in variables(each) for each in rows):
            found.extend(name for name in names if name in used)

    for stmt in walk(body):
        for expr in own_expressions(stmt):
            fold(expr, look)
    return found[0] if found and not along else None
