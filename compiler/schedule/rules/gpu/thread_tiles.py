"""Convolutions without tensor cores: products of pixels and channels, by tiles of threads.

    for p: for q: alloc acc: acc = 0; for k: acc add= a[p, k] * b[q, k]; c[p, q] = acc
    ->   for p.block, q.block (blocks): alloc acc[threads, 4, 4] register
           ... acc = 0 ...
           for k.steps: copies of a[64, 16] and b[64, 16] to shared memory, by all threads
             barrier
             for p.thread, q.thread (threads): for k.in: for p.item, q.item: acc add= a * b
             barrier
           ... c = acc ...

Sizes are widened to multiples of the tiles.  Rows of shared memory have one element more than they
need, and a thread has rows that are not neighbours, so that threads read different banks.
"""

from ....errors import ScheduleError
from ....loops.expressions import Scope
from ...steps.schedule import Schedule
from .product import Product
from .tiles import ENDS, in_blocks, with_blocks, with_copies

__all__ = ["in_thread_tiles", "sides_of"]

SIDES = (64, 32, 16)
"""Rows and columns of a tile: the first that adds at most a third."""
ITEMS, DEPTH, PADDING, VECTOR = 4, 16, 1, 4
"""Rows and columns of a thread; summed elements of a step; elements between rows; elements that a
thread copies at a time.
"""
LEAST = 16


def in_thread_tiles(schedule: Schedule, product: Product, turned: bool) -> Schedule:
    """As above; turned: rows are neighbours in the memory of the result.

    Raises ScheduleError for a product that is too small."""
    (p, height), (q, width), (k, length) = product.p, product.q, product.k
    if min(height, width, length) < LEAST:
        raise ScheduleError(f"product of {height}, {width}, {length}: too small for tiles")
    sides = sides_of(height, width)
    counts = tuple(each // ITEMS for each in sides)
    schedule = in_blocks(schedule, product, (*sides, DEPTH), PADDING)
    for end in ENDS:
        axes = [(p, counts[0]), (q, counts[1])]
        for axis, count in axes:
            whole, item, thread = (f"{axis}.{each}{end}" for each in ("in", "item", "thread"))
            schedule = schedule.split(whole, count, "exact", item, thread)
        threads = [f"{axis}.thread{end}" for axis in ((q, p) if turned else (p, q))]
        items = [f"{axis}.item{end}" for axis, _ in axes]
        summed = [f"{k}.in"] if end == ".sum" else []
        schedule = schedule.reorder(*threads, *summed, *items)
        for each in items:
            schedule = schedule.unroll(each)
    order = (3, 1) if turned else (1, 3)
    schedule = schedule.set_layout(product.acc, ((0, counts[0]), (2, counts[1])), (*order, 0, 2))
    schedule = with_copies(schedule, product, VECTOR, counts[0] * counts[1], False)
    first = f"{q if turned else p}.thread.sum"
    schedule = schedule.barrier(first).barrier(first, after=True)
    schedule = schedule.set_scope(product.acc, Scope.REGISTER)
    return with_blocks(schedule, product)


def sides_of(height: int, width: int) -> tuple[int, int]:
    """Rows and columns of the tiles of so many."""
    return _side(height), _side(width)


def _side(extent: int) -> int:
    for side in SIDES:
        if 3 * -(-extent // side) * side <= 4 * extent:
            return side
    return SIDES[-1]
