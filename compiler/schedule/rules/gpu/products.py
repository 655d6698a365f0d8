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

from dataclasses import dataclass

from ....errors import ScheduleError
from ....loops.expressions import Binary, BinaryFunction, Cast, Constant, Expr, Load, Scope
from ....loops.ir import Allocate, Block, For, LoopKind, Stmt, Update
from ....loops.traverse import variables, walk
from ...steps.schedule import Schedule
from .bind import bind_nests
from .reductions import schedule_reduction

__all__ = ["schedule_products"]

TILES = (64, 32, 16)
"""Rows and columns of a block's tile, the first that divides the matrix; ..."""
DEPTHS = (16, 8)
"""... and summed elements at a time."""
ITEMS = 4
"""Rows and columns of a thread's tile."""


@dataclass(frozen=True, slots=True)
class _Product:
    """outer: loops around; p, q, k: rows, columns, the sum, with their extents; acc: the sum's
    buffer; left, right: those of the operands.
    """

    outer: tuple[str, ...]
    p: tuple[str, int]
    q: tuple[str, int]
    k: tuple[str, int]
    acc: str
    left: str
    right: str


def schedule_products(schedule: Schedule) -> Schedule:
    """In tiles, where the function is one product whose sizes they divide; long sums of few results
    by the threads of a block together; else as other nests.
    """
    product = _product(schedule.function.body)
    if product is not None:
        try:
            return _tiled(schedule, product)
        except ScheduleError:
            pass
    try:
        return schedule_reduction(schedule)
    except ScheduleError:
        return bind_nests(schedule)


def _product(body: Stmt) -> _Product | None:
    """The form that the rule knows."""
    loops: list[tuple[str, int]] = []
    while isinstance(body, For) and isinstance(body.extent, Constant):
        loops.append((body.variable, int(body.extent.value)))
        body = body.body
    if len(loops) < 2 or not isinstance(body, Allocate) or not isinstance(body.body, Block):
        return None
    parts = body.body.statements
    if len(parts) != 3 or not isinstance(parts[1], For):
        return None
    inner = parts[1]
    update = inner.body
    if not isinstance(update, Update) or not isinstance(inner.extent, Constant):
        return None
    value = update.value
    if update.function is not BinaryFunction.ADD or not isinstance(value, Binary):
        return None
    factors = _load(value.left), _load(value.right)
    if value.function is not BinaryFunction.MUL or factors[0] is None or factors[1] is None:
        return None
    *outer, p, q = loops
    used = [{name for each in load.indices for name in variables(each)} for load in factors if load]
    k = inner.variable, int(inner.extent.value)
    left, right = factors[0].buffer.name, factors[1].buffer.name
    if q[0] in used[0]:
        used.reverse()
        left, right = right, left
    if left == right or not {p[0], k[0]} <= used[0] or not {q[0], k[0]} <= used[1]:
        return None
    if q[0] in used[0] or p[0] in used[1]:
        return None
    return _Product(tuple(name for name, _ in outer), p, q, k, body.buffer.name, left, right)


def _load(expr: Expr) -> Load | None:
    while isinstance(expr, Cast):
        expr = expr.operand
    return expr if isinstance(expr, Load) else None


def _divisor(extent: int, sizes: tuple[int, ...], what: str) -> int:
    for size in sizes:
        if extent % size == 0:
            return size
    raise ScheduleError(f"{what} of {extent}: required a multiple of {sizes[-1]}")


def _tiled(schedule: Schedule, product: _Product) -> Schedule:
    threads = 1
    for name, extent in (product.p, product.q):
        size = _divisor(extent, TILES, "a side")
        threads *= size // ITEMS
        schedule = schedule.split(name, size, "exact", f"{name}.block", f"{name}.tile")
        schedule = schedule.split(f"{name}.tile", ITEMS, "exact", f"{name}.thread", f"{name}.item")
    (p, _), (q, _), (k, depth) = product.p, product.q, product.k
    inside = (f"{p}.thread", f"{q}.thread", f"{p}.item", f"{q}.item")
    schedule = schedule.reorder(f"{p}.block", f"{q}.block", *inside)
    for name in reversed(inside):
        schedule = schedule.lift(product.acc, name)
    for name in reversed(inside):
        schedule = schedule.fission(name, 1, f"{name}.sum")
    for name in reversed(inside):
        schedule = schedule.fission(f"{name}.sum", 1, f"{name}.end")
    step = _divisor(depth, DEPTHS, "a sum")
    schedule = schedule.split(k, step, "exact", f"{k}.steps", f"{k}.in")
    rows, columns, row, column = (f"{name}.sum" for name in inside)
    schedule = schedule.reorder(f"{k}.steps", rows, columns, f"{k}.in", row, column)
    for name in (product.left, product.right):
        schedule = _copied(schedule, name, f"{k}.steps", threads)
    for end in ("", ".sum", ".end"):
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
