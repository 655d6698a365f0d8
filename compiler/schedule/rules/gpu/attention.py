"""Attention: a block of threads for some rows of queries, whose scores stay in the block.

    for o: for rows: for r0: ...; for columns: for r2: ...; for r7: ...
    ->   for o, rows (blocks): for r0 (threads): ...; for columns: for r2 (threads): ...

One thread computes a row: its scores, their maximum and sum, and its result are the thread's own,
and no thread waits for another.
"""

from ....errors import ScheduleError
from ....loops.expressions import Scope
from ....loops.ir import Allocate, For, LoopKind
from ....loops.traverse import walk
from ...steps.schedule import Schedule

__all__ = ["schedule_attention"]


def schedule_attention(schedule: Schedule) -> Schedule:
    """As above.  Raises ScheduleError where the loops are not those of ``define/attention.py``."""
    found = [each for each in walk(schedule.function.body) if isinstance(each, For)]
    rows = next((n for n, each in enumerate(found) if each.variable.startswith("rows")), None)
    if rows is None:
        raise ScheduleError("attention: required a loop over blocks of rows")
    for each in found[: rows + 1]:
        schedule = schedule.bind(each.variable, LoopKind.BLOCK)
    for each in found[rows + 1 :]:
        if each.variable[0] == "r":
            schedule = schedule.bind(each.variable, LoopKind.THREAD)
    for stmt in walk(schedule.function.body):
        if isinstance(stmt, Allocate) and stmt.buffer.scope is Scope.LOCAL:
            schedule = schedule.set_scope(stmt.buffer.name, Scope.REGISTER)
    return schedule
