"""Long sums for few results: the threads of a block share each sum.

    for o: alloc acc: acc = 0; for k: acc add= x[o, k]; y[o] = acc
    ->   for o (blocks): alloc part[64] shared: for l in 64 (threads): part[l] = 0
           for l in 64 (threads): for k.round: part[l] add= x[o, k.round * 64 + l]
           barrier
           acc = 0; for l in 64: acc add= part[l]; y[o] = acc (one thread)

Neighbours in memory are read by neighbouring threads.
"""

from collections.abc import Sequence
from math import prod

from ....errors import ScheduleError
from ....loops.affine import linear
from ....loops.expressions import Constant, Load, Scope
from ....loops.ir import Allocate, Block, For, LoopKind, Stmt, Update
from ....loops.traverse import loads, variables, walk
from ...steps.schedule import Schedule
from .choice import DEFAULT

__all__ = ["schedule_reduction"]

LEAST_LANES = 32
MOST_RESULTS = 1 << 11
"""Up to so many results have a block each, whatever they read; of more, ..."""
LEAST_SUM = 1 << 8
LEAST_ROW = 1 << 6
"""... those that sum rows of so many elements or more, which are in memory in the order of the sum,
...
"""
LANE_MICROSECONDS, BLOCK_MICROSECONDS = 3.2e-6, 2.0
"""... and those for which blocks are faster.  Blocks take so long for an element of all sums, ...
"""
ITERATION_MICROSECONDS = 0.05
"""... and a thread with a sum of its own for each of its elements.  Measured in convolutions of few
pixels, on an H100 on 2026-11-26.
"""


def schedule_reduction(schedule: Schedule, most: int = DEFAULT.lanes) -> Schedule:
    """As above, by at most so many threads, or by 32.

    Raises ScheduleError where the nest is not one such sum, and where a thread for each result is
    better.
    """
    stmt: Stmt = schedule.function.body
    outer: list[tuple[str, int]] = []
    while isinstance(stmt, For) and isinstance(stmt.extent, Constant):
        outer.append((stmt.variable, int(stmt.extent.value)))
        stmt = stmt.body
    inner = stmt.body if isinstance(stmt, Allocate) else stmt
    parts = inner.statements if isinstance(inner, Block) else ()
    if len(parts) < 2 or not isinstance(parts[1], For):
        raise ScheduleError("a sum: required one nest with a start, a sum and a result")
    summed, update = _sum(parts[1])
    name, extent = summed[-1]
    length = prod(each for _, each in summed)
    if not _is_worth(
        prod(each for _, each in outer), length, extent >= LEAST_LANES and _is_row(update, name)
    ):
        raise ScheduleError("a sum: required few results, or rows, and many elements for each")
    sizes = (most, LEAST_LANES)
    rest = most if length >= 8 * most else LEAST_LANES
    if len(summed) > 1 and not any(extent % each == 0 for each in sizes):
        for number, (each, _) in enumerate(summed[1:]):
            fused = f"{summed[0][0]}.all{number}"
            schedule, name = schedule.fuse(name if number else summed[0][0], each, fused), fused
        summed, extent = [(name, length)], length
    lanes = next((each for each in sizes if extent % each == 0), rest)
    lane, part = f"{name}.lane", f"{name}.part"
    schedule = schedule.split(name, lanes, "guard", f"{name}.round", lane)
    rounds = [each for each, _ in summed[:-1]]
    schedule = schedule.reorder(lane, *rounds, f"{name}.round").rfactor(lane, lane, part)
    first, last = (_loop(schedule, f"{part}.{each}.") for each in ("first", "last"))
    schedule = schedule.set_scope(part, Scope.SHARED).unroll(last)
    schedule = schedule.bind(first, LoopKind.THREAD).bind(lane, LoopKind.THREAD)
    schedule = schedule.barrier(lane, after=True)
    for each, _ in outer:
        schedule = schedule.bind(each, LoopKind.BLOCK)
    return schedule


def _is_worth(results: int, length: int, row: bool) -> bool:
    """True if a sum is long enough, and sums few enough, for threads to share each."""
    if results <= MOST_RESULTS and length >= LEAST_SUM:
        return True
    if row:
        return length >= LEAST_ROW
    shared = LANE_MICROSECONDS * results * length + BLOCK_MICROSECONDS
    return length >= LEAST_SUM and shared < ITERATION_MICROSECONDS * length


def _is_row(update: Update, name: str) -> bool:
    """True if all elements that a sum reads are side by side, in the order of the loop ``name``."""
    read = [each for each in loads(update.value) if name in _names(each)]
    return bool(read) and all(linear(each.indices[-1]).coefficient(name) == 1 for each in read)


def _names(load: Load) -> set[str]:
    return {name for each in load.indices for name in variables(each)}


def _sum(stmt: Stmt) -> tuple[Sequence[tuple[str, int]], Update]:
    """The summed loops, one in the other, and the update in them."""
    found = []
    while isinstance(stmt, For) and isinstance(stmt.extent, Constant):
        found.append((stmt.variable, int(stmt.extent.value)))
        stmt = stmt.body
    if not found or not isinstance(stmt, Update):
        raise ScheduleError("a sum: required loops of constant extents around one update")
    return found, stmt


def _loop(schedule: Schedule, start: str) -> str:
    """The loop whose name begins so."""
    for stmt in walk(schedule.function.body):
        if isinstance(stmt, For) and stmt.variable.startswith(start):
            return stmt.variable
    raise ScheduleError(f"a sum: no loop is called {start}")
