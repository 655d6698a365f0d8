"""Outer loops to blocks and threads, where their iterations do not depend on each other.

    for c in 64: for y in 56: for x in 56: S   ->
        for c in 64 block: for y.o in 14 block: for y.i in 4 thread: for x in 56 thread: S

The innermost of these loops become threads, as many as a block should have; a loop that would make
them too many is split.  A loop whose iterations meet, and all inside of it, stays as it is.
"""

from dovetail.isa.frozen import frozen

from ....errors import ScheduleError
from ....loops.expressions import Constant
from ....loops.ir import Allocate, Block, For, If, Let, LoopKind, Stmt
from ....loops.legality import carried
from ...steps.schedule import Schedule
from ...steps.site import find_loop
from .choice import DEFAULT

__all__ = ["bind_nests"]


@frozen
class _Loop:
    name: str
    extent: int


def bind_nests(schedule: Schedule, threads: int = DEFAULT.threads) -> Schedule:
    """Every nest at the top of the function in blocks, and threads of at most so many: enough to
    hide the latency of arithmetic, few enough to have many registers each.
    """
    for name in _nests(schedule.function.body):
        free = _independent(schedule, name)
        if free:
            schedule = _bound(schedule, free, threads)
    return schedule


def _nests(body: Stmt) -> list[str]:
    """The outermost loops."""
    match body:
        case For(variable=name, kind=LoopKind.SERIAL):
            return [name]
        case Block(statements=statements):
            return [name for each in statements for name in _nests(each)]
        case Allocate(body=inner) | Let(body=inner):
            return _nests(inner)
        case If(then=inner, otherwise=None):
            return _nests(inner)
        case _:
            return []


def _independent(schedule: Schedule, name: str) -> list[_Loop]:
    """The loop called ``name`` and those directly in each other, up to the first that depends."""
    found = []
    stmt: Stmt = find_loop(schedule.function, name)[1]
    while isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL:
        site, _ = find_loop(schedule.function, stmt.variable)
        if not isinstance(stmt.extent, Constant) or stmt.extent.value == 0:
            break
        if carried(stmt, site.bounds, reductions=True, intrinsics=schedule.intrinsics):
            break
        found.append(_Loop(stmt.variable, int(stmt.extent.value)))
        stmt = stmt.body
    return found


def _bound(schedule: Schedule, loops: list[_Loop], most: int) -> Schedule:
    """The last loops as threads, the others as blocks; as before if a step does not apply."""
    before, threads = schedule, 1
    try:
        while loops and threads * loops[-1].extent <= most:
            last = loops.pop()
            threads *= last.extent
            schedule = schedule.bind(last.name, LoopKind.THREAD)
        if loops and most // threads > 1:
            last = loops.pop()
            factor = _factor(last.extent, most // threads)
            outer, inner = f"{last.name}.blocks", f"{last.name}.threads"
            schedule = schedule.split(last.name, factor, outer=outer, inner=inner)
            schedule = schedule.bind(inner, LoopKind.THREAD).bind(outer, LoopKind.BLOCK)
        for each in loops:
            schedule = schedule.bind(each.name, LoopKind.BLOCK)
    except ScheduleError:
        return before
    return schedule


def _factor(extent: int, most: int) -> int:
    """Iterations that go together: a divisor where one is at least half of what is possible."""
    for factor in range(most, most // 2, -1):
        if extent % factor == 0:
            return factor
    return most
