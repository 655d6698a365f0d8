"""Tiles of products in blocks: loops over blocks, and copies of operands in shared memory."""

from contextlib import suppress

from ....errors import ScheduleError
from ....loops.expressions import Scope
from ....loops.ir import For, LoopKind, Stmt
from ....loops.traverse import walk
from ...steps.schedule import Schedule
from ...steps.site import find_loop
from .product import Product

__all__ = [
    "ENDS",
    "copied",
    "in_blocks",
    "in_stages",
    "in_strips",
    "with_blocks",
    "with_copies",
    "without_guards",
]

ENDS = ("", ".sum", ".end")
"""Ends of the names of a tile's loops: those that start sums, add, and store."""
STRIPS = (16, 8, 4, 2)


def in_stages(schedule: Schedule, product: Product, inside: tuple[str, ...]) -> Schedule:
    """The loops ``inside`` of a tile three times over, as ``ENDS`` says, with a sum for each of
    their elements.
    """
    for name in reversed(inside):
        schedule = schedule.lift(product.acc, name)
    for name in reversed(inside):
        schedule = schedule.fission(name, 1, f"{name}.sum")
    for name in reversed(inside):
        schedule = schedule.fission(f"{name}.sum", 1, f"{name}.end")
    return schedule


def in_blocks(
    schedule: Schedule, product: Product, sizes: tuple[int, int, int], padding: int
) -> Schedule:
    """Rows and columns in tiles of blocks, the sum in steps, whose operands are in shared memory.

    sizes: of a tile, and summed elements of a step.  padding: elements more of each row there.
    Loops over the rows and columns of a tile are threads, and follow each other as ``ENDS`` says;
    those around them are blocks ``with_blocks``.
    """
    (p, _), (q, _), (k, _) = product.p, product.q, product.k
    rows, columns, whole = sizes
    schedule = schedule.widen(q, columns).widen(p, rows).widen(k, whole)
    schedule = schedule.split(p, rows, "exact", f"{p}.block", f"{p}.in")
    schedule = schedule.split(q, columns, "exact", f"{q}.block", f"{q}.in")
    schedule = schedule.split(k, whole, "exact", f"{k}.steps", f"{k}.in")
    inside = (f"{p}.in", f"{q}.in")
    schedule = schedule.reorder(f"{p}.block", f"{q}.block", *inside)
    for name in inside:
        # Loops over threads keep their extents, whatever guards are in them.
        schedule = schedule.bind(name, LoopKind.THREAD)
    schedule = in_stages(schedule, product, inside)
    schedule = schedule.reorder(f"{k}.steps", f"{p}.in.sum", f"{q}.in.sum", f"{k}.in")
    for name, axis in ((product.left, p), (product.right, q)):
        used = (f"{axis}.in.sum", f"{k}.in")
        schedule = schedule.stage(name, f"{k}.steps", used, Scope.SHARED, f"{name}.tile", padding)
    return schedule


def without_guards(schedule: Schedule, loops: tuple[str, ...]) -> Schedule:
    """Guards of rows before the loops over columns, so that those are stored together."""
    for name in loops:
        with suppress(ScheduleError):
            schedule = schedule.hoist_guard(name)
    return schedule


def with_blocks(schedule: Schedule, product: Product) -> Schedule:
    """The loops around a tile as blocks: done last, since every step after it would have to prove
    it again.
    """
    stmt: Stmt = find_loop(schedule.function, _outermost(schedule, product))[1]
    while isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL:
        schedule = schedule.bind(stmt.variable, LoopKind.BLOCK)
        stmt = stmt.body
    return schedule


def _outermost(schedule: Schedule, product: Product) -> str:
    """The first loop of the nest that a product is now."""
    names = (*product.outer, f"{product.p[0]}.strip", f"{product.p[0]}.block")
    every = {each.variable for each in walk(schedule.function.body) if isinstance(each, For)}
    return next(each for each in names if each in every)


def in_strips(schedule: Schedule, product: Product, blocks: int) -> Schedule:
    """Tiles one below the other follow each other, 16 of them or as many as divide all: a GPU's
    blocks at a time then read fewer rows and columns; blocks: of tiles, in the direction of rows.

        for p.block: for q.block   ->   for p.strip: for q.block: for p.one
    """
    size = next((each for each in STRIPS if blocks % each == 0), 1)
    if size == 1:
        return schedule
    (p, _), (q, _) = product.p, product.q
    strip, one = f"{p}.strip", f"{p}.one"
    schedule = schedule.split(f"{p}.block", size, "exact", strip, one)
    return schedule.reorder(strip, f"{q}.block", one)


def with_copies(
    schedule: Schedule, product: Product, vector: int, threads: int, asynchronous: bool
) -> Schedule:
    """All threads of a block copy the operands of a step, ``vector`` elements at a time."""
    operands = zip((product.left, product.right), product.apart, strict=True)
    for name, apart in operands:
        schedule = copied(schedule, f"{name}.tile", vector, threads, apart)
    if asynchronous:
        for name, kind in zip((product.left, product.right), product.dtypes, strict=False):
            item = f"{name}.tile.item"
            # Outside of an image, and beyond the sum, there are zeros.
            with suppress(ScheduleError):
                schedule = schedule.choose(item)
            schedule = schedule.tensorize(item, f"copy_{kind}")
    return schedule


def copied(schedule: Schedule, tile: str, vector: int, threads: int, apart: bool) -> Schedule:
    """All threads of the block fill a buffer, each in pieces of 16 bytes of a row.

    Neighbouring threads read neighbours in memory: parts of a row, or where those are ``apart``,
    as many rows.
    """
    row, column = (
        each.variable
        for each in walk(schedule.function.body)
        if isinstance(each, For) and each.variable.startswith(f"{tile}.")
    )
    chunk, item, whole = f"{tile}.chunk", f"{tile}.item", f"{tile}.all"
    schedule = schedule.split(column, vector, "exact", chunk, item)
    if apart:
        schedule = schedule.reorder(chunk, row, item)
    schedule = schedule.fuse(*((chunk, row) if apart else (row, chunk)), whole)
    schedule = schedule.split(whole, threads, "guard", f"{tile}.round", f"{tile}.thread")
    schedule = schedule.reorder(f"{tile}.thread", f"{tile}.round")
    return schedule.bind(f"{tile}.thread", LoopKind.THREAD)
