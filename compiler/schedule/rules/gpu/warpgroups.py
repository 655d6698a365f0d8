"""Products of matrices by warpgroups of Hopper GPUs: tiles of blocks, of warpgroups.

    for p: for q: alloc acc: acc = 0; for k: acc add= a[p, k] * b[q, k]; c[p, q] = acc
    ->   for p.block, q.block (blocks): alloc acc[groups, threads, sums of a thread] register
           ... acc = 0 ...
           asynchronous copies of a[128, 128] and b[256, 128] to shared memory, by all threads
           wait, barrier
           for k.steps:
             for p.group (warpgroups): for k.part: for p.tile: invoke wgmma(a, b, acc)
             asynchronous copies for the next step;  wait, barrier
           ... c = acc ...

The products go on while threads copy; with four buffers for each operand, also while they wait for
the next step's copies and for each other.  Operands are in shared memory in pieces of 128 bytes of
all rows, ``[part, row, 128 bytes]``, as the instructions read them.  Tiles that do not divide a
matrix read its last row again, and store what there is; steps divide the rows of both operands.
"""

from math import prod

from ....errors import ScheduleError
from ....loops.expressions import Scope
from ....loops.intrinsic import Intrinsic
from ...steps.schedule import Schedule
from .choice import Choice, is_group
from .product import Product
from .tiles import ENDS, in_blocks, in_strips, with_blocks, with_copies, without_guards
from .warps import Nest, beside

__all__ = ["on_warpgroups"]

THREADS, ROWS = 128, 64
"""Threads of a warpgroup, and rows of an instruction's result."""
TILE = (128, 256)
"""Rows and columns of a block's tile, if the choice has none."""
VECTOR_BYTES = 16
SHARED_BYTES = 226 << 10
"""Shared memory that a block may have on sm_90a, less the part lost to alignment to 1024 bytes."""


def on_warpgroups(schedule: Schedule, product: Product, choice: Choice) -> Schedule:
    """The product by ``choice.groups`` warpgroups a block.

    Raises ScheduleError where no intrinsic is of its types, and where tiles do not fit.
    """
    rows, columns = choice.rows or TILE[0], choice.columns or TILE[1]
    intrinsic = _intrinsic(schedule, product, columns)
    left = intrinsic.parameters[0].dtype
    depth = intrinsic.parameters[0].shape[-1]
    (p, _), (q, _), (k, _) = product.p, product.q, product.k
    whole = depth * choice.parts
    _require_whole(product, whole)
    own, threads = rows // choice.groups, THREADS * choice.groups
    if own % ROWS or rows % choice.groups:
        raise ScheduleError(f"{choice.groups} warpgroups, {rows} rows: required {ROWS} of each")
    if columns * whole * left.bytes // VECTOR_BYTES % threads:
        raise ScheduleError(f"{columns} rows of {whole} for {threads} threads: not all would copy")
    shared = choice.buffers * (rows + columns) * whole * left.bytes
    if shared > SHARED_BYTES:
        raise ScheduleError(f"tiles of {shared} bytes of shared memory; there are {SHARED_BYTES}")
    schedule = in_blocks(schedule, product, (rows, columns, whole), 0)
    schedule = in_strips(schedule, product, -(-product.p[1] // rows))
    part, thread, _, item = beside(columns)
    cut = ((0, part), (1, thread), (2, item))
    schedule = schedule.set_layout(f"{product.left}.tile", ((1, depth),), (1, 0, 2))
    schedule = schedule.set_layout(f"{product.right}.tile", ((1, depth), *cut), (4, 0, 2, 1, 3, 5))
    schedule = schedule.split(f"{k}.in", depth, "exact", f"{k}.part", f"{k}.item")
    for end in ENDS:
        nest = Nest((f"{p}.in{end}", f"{q}.in{end}"), (p, q), end)
        summed = (f"{k}.part", f"{k}.item") if end == ".sum" else None
        schedule = _in_groups(schedule, nest, own, columns, summed)
    schedule = without_guards(
        schedule, tuple(f"{q}.{each}.end" for each in ("item", "pair", "part"))
    )
    parts = [part] if columns > part else []
    sides = tuple(enumerate((columns, *parts, thread, item), 5))
    layout = ((0, own), (1, ROWS), (2, 16), (3, 8), *sides)
    order = (0, 5, 2, 4, 7, 1, 6, 8, 3, 9) if parts else (0, 5, 2, 4, 6, 1, 7, 3, 8)
    schedule = schedule.set_layout(product.acc, layout, order)
    schedule = schedule.tensorize(f"{p}.warp.sum", intrinsic.name)
    vector = VECTOR_BYTES // left.bytes
    schedule = with_copies(schedule, product, vector, threads, True)
    schedule = schedule.unroll(f"{k}.part")
    schedule = schedule.overlap(f"{k}.steps", behind=True, buffers=choice.buffers)
    schedule = schedule.set_scope(product.acc, Scope.REGISTER)
    return with_blocks(schedule, product)


def _intrinsic(schedule: Schedule, product: Product, columns: int) -> Intrinsic:
    """The one of the product's types and so many columns."""
    for name, each in schedule.intrinsics.items():
        types = tuple(parameter.dtype for parameter in each.parameters)
        if (
            is_group(name)
            and types == product.dtypes
            and prod(each.parameters[1].shape[:-1]) == columns
        ):
            return each
    raise ScheduleError(
        f"on warpgroups: no products of {', '.join(product.dtypes)} with {columns} columns"
    )


def _require_whole(product: Product, size: int) -> None:
    """Raise ScheduleError unless steps of ``size`` elements divide the sum and rows in memory."""
    if product.k[1] % size:
        raise ScheduleError(f"sums of {product.k[1]}: required multiples of {size}")
    if not all(row and row % size == 0 for row in product.whole):
        raise ScheduleError(f"rows of operands: required multiples of {size} elements")


def _in_groups(
    schedule: Schedule, nest: Nest, rows: int, columns: int, summed: tuple[str, str] | None
) -> Schedule:
    """A nest as loops over warpgroups, instructions, and the parts of an instruction's result.

    summed: the loops over instructions and in them, where the nest is the products' own.
    """
    row, column = nest.row, nest.column
    part, thread, _, item = beside(columns)
    # A loop of one iteration is none in what an instruction means.
    several = columns > part
    for whole, factor, outer, inner in (
        (nest.loops[0], rows, row("group"), row("rows")),
        (row("rows"), ROWS, row("tile"), row("row")),
        (row("row"), 16, row("warp"), row("sixteen")),
        (row("sixteen"), 8, row("half"), row("eight")),
        (nest.loops[1], columns, column("group"), column("column")),
        *([(column("column"), part, column("part"), column("rest"))] if several else []),
        (column("rest" if several else "column"), thread, column("thread"), column("own")),
        (column("own"), item, column("pair"), column("item")),
    ):
        schedule = schedule.split(whole, factor, "exact", outer, inner)
    groups = [row("group"), column("group")]
    across = [*([column("part")] if several else []), column("pair"), column("item")]
    parts = [row("tile"), row("half"), *across]
    if summed is not None:
        own = [row("warp"), row("half"), row("eight")]
        own += [*across[:-2], column("pair"), column("thread"), column("item")]
        schedule = schedule.reorder(*groups, summed[0], row("tile"), *own, summed[1])
        return schedule.unroll(row("tile"))
    threads = [row("warp"), row("eight"), column("thread")]
    schedule = schedule.reorder(*groups, *threads, *parts)
    for each in parts:
        schedule = schedule.unroll(each)
    return schedule
