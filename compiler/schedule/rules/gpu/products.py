"""Products of matrices in tiles: of blocks in shared memory, of threads in registers.

    for p: for q: alloc acc: acc = 0; for k: acc add= a[p, k] * b[k, q]; c[p, q] = acc
    ->   for p.block, q.block (blocks): alloc acc[p.thread, q.thread, 4, 4]
           ... acc = 0 ...
           for k.steps: copies of a[64, 16] and b[16, 64] by all threads
             barrier
             for p.thread, q.thread (threads): for k.in 16: 4 x 4 sums
             barrier
           ... c = acc ...

Each element of a block's tiles is read once from memory, and then 64 times from shared memory; a
thread reads 8 elements there for 16 products.
"""

from contextlib import suppress

from ....errors import ScheduleError
from ....loops.expressions import Scope
from ....loops.ir import For, LoopKind
from ....loops.traverse import walk
from ...steps.schedule import Schedule
from .bind import bind_nests
from .choice import DEFAULT, Choice
from .product import Product, product_of
from .reductions import schedule_reduction
from .tensor_cores import on_tensor_cores
from .tiles import ENDS, in_stages

__all__ = ["schedule_products"]

TILES = (64, 32, 16)
"""Rows and columns of a block's tile, the first that divides the matrix; ..."""
DEPTHS = (16, 8)
"""... and summed elements at a time."""


def schedule_products(schedule: Schedule, choice: Choice = DEFAULT) -> Schedule:
    """In tiles, where the function is one product: on tensor cores if the schedule's intrinsics are
    of its types, else where tiles divide its sizes; long sums of few results by the threads of a
    block together; else as other nests.

    Raises ScheduleError where the choice is of warpgroups and they do not suit.
    """
    if choice.groups:
        return on_tensor_cores(schedule, choice)
    with suppress(ScheduleError):
        return on_tensor_cores(schedule, choice)
    product = product_of(schedule.function.body)
    if product is not None:
        with suppress(ScheduleError):
            return _tiled(schedule, product, choice)
    try:
        return schedule_reduction(schedule, choice.lanes)
    except ScheduleError:
        return bind_nests(schedule, choice.threads)


def _divisor(extent: int, sizes: tuple[int, ...], what: str) -> int:
    for size in sizes:
        if extent % size == 0:
            return size
    raise ScheduleError(f"{what} of {extent}: required a multiple of {sizes[-1]}")


def _tiled(schedule: Schedule, product: Product, choice: Choice) -> Schedule:
    threads = 1
    for name, extent in (product.p, product.q):
        size = _divisor(extent, (choice.side,) if choice.side else TILES, "a side")
        threads *= size // choice.items
        schedule = schedule.split(name, size, "exact", f"{name}.block", f"{name}.tile")
        schedule = schedule.split(
            f"{name}.tile", choice.items, "exact", f"{name}.thread", f"{name}.item"
        )
    (p, _), (q, _), (k, depth) = product.p, product.q, product.k
    inside = (f"{p}.thread", f"{q}.thread", f"{p}.item", f"{q}.item")
    schedule = schedule.reorder(f"{p}.block", f"{q}.block", *inside)
    schedule = in_stages(schedule, product, inside)
    step = _divisor(depth, (choice.depth,) if choice.depth else DEPTHS, "a sum")
    schedule = schedule.split(k, step, "exact", f"{k}.steps", f"{k}.in")
    rows, columns, row, column = (f"{name}.sum" for name in inside)
    schedule = schedule.reorder(f"{k}.steps", rows, columns, f"{k}.in", row, column)
    for name in (product.left, product.right):
        schedule = _copied(schedule, name, f"{k}.steps", threads)
    for end in ENDS:
        schedule = schedule.bind(f"{p}.thread{end}", LoopKind.THREAD)
        schedule = schedule.bind(f"{q}.thread{end}", LoopKind.THREAD)
        schedule = schedule.unroll(f"{p}.item{end}").unroll(f"{q}.item{end}")
    for name in (*product.outer, f"{p}.block", f"{q}.block"):
        schedule = schedule.bind(name, LoopKind.BLOCK)
    schedule = schedule.barrier(rows).barrier(rows, after=True)
    return schedule.set_scope(product.acc, Scope.REGISTER)


def _copied(schedule: Schedule, buffer: str, loop: str, threads: int) -> Schedule:
    """A tile of ``buffer`` in shared memory, which all threads of the block copy together."""
    tile = f"{buffer}.tile"
    schedule = schedule.cache_read(buffer, loop, Scope.SHARED, tile)
    found = [
        each.variable
        for each in walk(schedule.function.body)
        if isinstance(each, For) and each.variable.startswith(f"{tile}.")
    ]
    whole = found[0]
    for name in found[1:]:
        schedule = schedule.fuse(whole, name, f"{tile}.all")
        whole = f"{tile}.all"
    schedule = schedule.split(whole, threads, "exact", f"{tile}.round", f"{tile}.thread")
    return schedule.reorder(f"{tile}.thread", f"{tile}.round").bind(
        f"{tile}.thread", LoopKind.THREAD
    )
