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
from ....loops.expressions import Constant, Scope
from ....loops.ir import Allocate, Block, For, LoopKind, Stmt, Update
from ....loops.traverse import walk
from ...steps.schedule import Schedule
from .choice import DEFAULT

__all__ = ["schedule_reduction"]

LEAST_LANES = 32
MOST_RESULTS = 1 << 11
"""With more of them, there is a thread for each."""
LEAST_SUM = 1 << 8


def schedule_reduction(schedule: Schedule, most: int = DEFAULT.lanes) -> Schedule:
    """As above, by at most so many threads, or 32, if they divide the sum.

    Raises ScheduleError where the nest is not one such sum.
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
    summed = _sum(parts[1])
    name, extent = summed[-1]
    lanes = next((each for each in (most, LEAST_LANES) if extent % each == 0), 0)
    few = prod(each for _, each in outer) <= MOST_RESULTS
    if not few or not lanes or prod(each for _, each in summed) < LEAST_SUM:
        raise ScheduleError("a sum: required few results, and many elements for each")
    lane, part = f"{name}.lane", f"{name}.part"
    schedule = schedule.split(name, lanes, "exact", f"{name}.round", lane)
    rounds = [each for each, _ in summed[:-1]]
    schedule = schedule.reorder(lane, *rounds, f"{name}.round").rfactor(lane, lane, part)
    first = _first_loop(schedule, part)
    schedule = schedule.set_scope(part, Scope.SHARED)
    schedule = schedule.bind(first, LoopKind.THREAD).bind(lane, LoopKind.THREAD)
    schedule = schedule.barrier(lane, after=True)
    for each, _ in outer:
        schedule = schedule.bind(each, LoopKind.BLOCK)
    return schedule


def _sum(stmt: Stmt) -> Sequence[tuple[str, int]]:
    """The summed loops, one in the other down to the update."""
    found = []
    while isinstance(stmt, For) and isinstance(stmt.extent, Constant):
        found.append((stmt.variable, int(stmt.extent.value)))
        stmt = stmt.body
    if not found or not isinstance(stmt, Update):
        raise ScheduleError("a sum: required loops of constant extents around one update")
    return found


def _first_loop(schedule: Schedule, part: str) -> str:
    """The loop that sets the parts to nothing."""
    for stmt in walk(schedule.function.body):
        if isinstance(stmt, For) and stmt.variable.startswith(f"{part}.first."):
            return stmt.variable
    raise ScheduleError("a sum: its parts have no start")
