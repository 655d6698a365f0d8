"""Products of matrices on tensor cores: tiles of blocks, of warps, of instructions.

    for p: for q: alloc acc: acc = 0; for k: acc add= a[p, k] * b[q, k]; c[p, q] = acc
    ->   for p.block, q.block (blocks): alloc acc[warps, threads, sums of a thread] register
           ... acc = 0 ...
           asynchronous copies of a[128, 64] and b[128, 64] to shared memory, by all threads
           for k.steps: wait, barrier, copies for the next step
             for p.warp, q.warp (warps): for k.part: for p.tile, q.tile: invoke mma(a, b, acc)
           ... c = acc ...

Where tiles do not divide rows, elements are copied one by one, and a barrier stands at each end.

Sizes that tiles do not divide are widened: what is too much is computed, and not stored.  Rows of
shared memory have 16 bytes more than they need, so that eight rows which ``ldmatrix`` reads at
once are in different banks.
"""

from contextlib import suppress
from math import gcd

from ....errors import ScheduleError
from ....loops.expressions import Scope
from ....loops.intrinsic import Intrinsic
from ...steps.schedule import Schedule
from .choice import DEFAULT, Choice, is_group
from .estimate import Work
from .product import Product, product_of
from .tensor_tiles import best_choice
from .tiles import ENDS, in_blocks, with_blocks, with_copies, without_guards
from .warpgroups import on_warpgroups
from .warps import PADDING_BYTES, SIDE, Nest, TileShape, in_registers_beside, in_warps_beside

__all__ = ["on_tensor_cores", "work_of"]

LEAST = 16
"""Rows and columns of the smallest product that is worth the tiles' overhang."""


def on_tensor_cores(schedule: Schedule, choice: Choice = DEFAULT) -> Schedule:
    """The function's product, by that of the schedule's intrinsics which is of its types.

    Raises ScheduleError where there is none, or the product is too small.
    """
    product = product_of(schedule.function.body)
    if product is None:
        raise ScheduleError("on tensor cores: the function is not a product of matrices")
    sizes = product.p[1], product.q[1], product.k[1]
    if min(sizes) < LEAST:
        raise ScheduleError(f"product of {', '.join(map(str, sizes))}: too small for tiles")
    if choice.groups:
        return on_warpgroups(schedule, product, choice)
    intrinsic = _intrinsic(schedule, product)
    if choice.rows and choice.columns:
        return _scheduled(schedule, product, intrinsic, choice)
    work = work_of(product)
    hopper = any(map(is_group, schedule.intrinsics))
    best = best_choice(work, hopper, grouped=hopper)
    if best.groups:
        with suppress(ScheduleError):
            return on_warpgroups(schedule, product, best)
        best = best_choice(work, hopper, grouped=False)
    return _scheduled(schedule, product, intrinsic, best)


def work_of(product: Product) -> Work:
    """The product as an estimate sees it."""
    (_, rows), (_, columns), (_, length) = product.p, product.q, product.k
    whole = gcd(*product.whole, length) if all(product.whole) else 0
    return Work(product.count, rows, columns, length, product.dtypes[0].bytes, whole)


def _intrinsic(schedule: Schedule, product: Product) -> Intrinsic:
    """The instruction of warps that is of the product's types."""
    for intrinsic in schedule.intrinsics.values():
        types = tuple(each.dtype for each in intrinsic.parameters)
        if types == product.dtypes and intrinsic.name.endswith("_beside"):
            return intrinsic
    raise ScheduleError(f"on tensor cores: no products of {', '.join(product.dtypes)}")


def _scheduled(
    schedule: Schedule, product: Product, intrinsic: Intrinsic, choice: Choice
) -> Schedule:
    left = intrinsic.parameters[0]
    depth = left.shape[-1]
    (p, _), (q, _), (k, length) = product.p, product.q, product.k
    tile = _tile(choice)
    whole = depth * (choice.parts if length > depth else 1)
    padding = PADDING_BYTES // left.dtype.bytes
    schedule = in_blocks(schedule, product, (tile.rows, tile.columns, whole), padding)
    schedule = schedule.split(f"{k}.in", depth, "exact", f"{k}.part", f"{k}.item")
    for end in ENDS:
        nest = Nest((f"{p}.in{end}", f"{q}.in{end}"), (p, q), end)
        summed = (f"{k}.part", f"{k}.item") if end == ".sum" else None
        schedule = in_warps_beside(schedule, nest, tile, summed)
    inside = tuple(f"{q}.{each}.end" for each in ("item", "half", "tile", "part"))
    schedule = without_guards(schedule, inside)
    schedule = in_registers_beside(schedule, product.acc, f"{product.right}.tile", tile)
    schedule = schedule.tensorize(f"{p}.half.sum", intrinsic.name)
    # Threads part at the guards of other copies, and must be together for a product after them.
    rows = work_of(product).whole
    ahead = length > whole and rows > 0 and rows % padding == 0
    schedule = with_copies(schedule, product, padding, tile.threads, ahead)
    schedule = schedule.unroll(f"{k}.part")
    first = f"{p}.warp.sum"
    if ahead:
        schedule = schedule.overlap(f"{k}.steps", buffers=min(choice.buffers, 3))
    else:
        schedule = schedule.barrier(first).barrier(first, after=True)
    schedule = schedule.set_scope(product.acc, Scope.REGISTER)
    return with_blocks(schedule, product)


def _tile(choice: Choice) -> TileShape:
    """The tile of a choice.  Raises ScheduleError where warps do not divide it."""
    tile = TileShape(choice.rows, choice.columns, choice.warps, choice.column_warps or choice.warps)
    if tile.rows % (SIDE * tile.row_warps) or tile.columns % (SIDE * tile.column_warps):
        raise ScheduleError(f"tile of {tile.rows} x {tile.columns}: required multiples of a warp's")
    return tile
