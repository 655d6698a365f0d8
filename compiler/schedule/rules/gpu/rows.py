"""Passes over a row: a block for each row, whose threads share every pass.

for o: alloc row[N]: for k: row[k] = x[o, k];  s = 0; for k: s add= row[k];  for k: y = f(row, s)
->   for o (blocks): alloc row[N] shared: for l in 64 (threads): for r: row[64 r + l] = ...
       for l (threads): part[l] = sums;  barrier;  s = sum of parts (one thread);  barrier
       for l (threads): for r: y = f(row, s)
"""

from ....errors import ScheduleError
from ....loops.expressions import Constant, Scope
from ....loops.ir import Allocate, Block, For, LoopKind, Stmt, Update
from ....loops.traverse import loads, own_expressions, walk
from ...steps.schedule import Schedule
from .choice import DEFAULT

__all__ = ["schedule_rows"]


def schedule_rows(schedule: Schedule, lanes: int = DEFAULT.lanes) -> Schedule:
    """As above, by so many threads.

    Raises ScheduleError where passes do more than one thing each, and where a row is shorter.
    """
    stmt: Stmt = schedule.function.body
    outer = []
    while isinstance(stmt, For):
        outer.append(stmt.variable)
        stmt = stmt.body
    kept = []
    while isinstance(stmt, Allocate):
        kept.append(stmt.buffer)
        stmt = stmt.body
    if not outer or not kept or not isinstance(stmt, Block):
        raise ScheduleError("rows: required passes over rows that are kept")
    passes = [each for each in stmt.statements if isinstance(each, For)]
    for each in passes:
        if any(isinstance(inner, For) for inner in walk(each.body)):
            raise ScheduleError("rows: a pass has loops of its own")
        if not isinstance(each.extent, Constant) or int(each.extent.value) < lanes:
            raise ScheduleError(f"rows: required rows of at least {lanes}")
    for buffer in kept:
        schedule = schedule.set_scope(buffer.name, Scope.SHARED)
    for each in passes:
        # A thread finds its own elements of a row again; sums are of one thread.
        read = [
            load for inner in walk(each) for part in own_expressions(inner) for load in loads(part)
        ]
        schedule = _shared(schedule, each, lanes, any(not load.buffer.shape for load in read))
    for name in outer:
        schedule = schedule.bind(name, LoopKind.BLOCK)
    return schedule


def _shared(schedule: Schedule, loop: For, lanes: int, wait: bool) -> Schedule:
    """One pass by threads; wait: for what others have written before."""
    name = loop.variable
    lane, turn, part = f"{name}.lane", f"{name}.round", f"{name}.part"
    schedule = schedule.split(name, lanes, "guard", turn, lane).reorder(lane, turn)
    first = lane
    if isinstance(loop.body, Update):
        schedule = schedule.rfactor(lane, lane, part).set_scope(part, Scope.SHARED)
        first, last = (_loop(schedule, f"{part}.{each}.") for each in ("first", "last"))
        schedule = schedule.unroll(last).bind(first, LoopKind.THREAD)
    schedule = schedule.bind(lane, LoopKind.THREAD)
    if first != lane:
        schedule = schedule.barrier(lane, after=True)
    return schedule.barrier(first) if wait else schedule


def _loop(schedule: Schedule, start: str) -> str:
    """The loop whose name begins so."""
    for stmt in walk(schedule.function.body):
        if isinstance(stmt, For) and stmt.variable.startswith(start):
            return stmt.variable
    raise ScheduleError(f"rows: no loop is called {start}")
