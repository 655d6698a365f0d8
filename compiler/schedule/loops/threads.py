"""The rule that spreads a function over the threads of a CPU.

Of each nest at the top of the function, the outermost loops become one parallel loop:

    for i in N: for j in M: S   ->   for i.j in N * M parallel: S

as long as they are nested in each other directly, until there are enough iterations for all
threads; where iterations depend on each other the nest stays as it is.
"""

from ...errors import ScheduleError
from ...loops.expressions import Constant
from ...loops.ir import Allocate, Block, For, Function, If, Let, LoopKind, Stmt, While
from ...loops.rewrite import bodies
from .schedule import Schedule

__all__ = ["over_threads"]

ITERATIONS = 64
"""That are enough for threads to share them out evenly."""

LEAST_WORK = 1 << 15
"""Executions of innermost statements; waking threads takes longer than fewer."""


def over_threads(function: Function) -> Schedule:
    """The function with parallel loops, where that is legal and pays."""
    schedule = Schedule.of(function)
    for name in _roots(schedule.function.body):
        try:
            schedule = _spread(schedule, name)
        except ScheduleError:
            continue
    return schedule


def _roots(body: Stmt) -> list[str]:
    """The outermost loops that hold enough work."""
    found, stack = [], [body]
    while stack:
        stmt = stack.pop()
        match stmt:
            case For(variable=name, kind=LoopKind.SERIAL):
                if _work(stmt) >= LEAST_WORK:
                    found.append(name)
            case Block(statements=statements):
                stack += statements
            case Allocate(body=inner) | Let(body=inner):
                stack.append(inner)
            case _:
                pass
    return found


def _work(stmt: Stmt) -> int:
    """How many statements without a body run, where extents are constants; others count as 1."""
    match stmt:
        case For(extent=extent, body=body):
            return (int(extent.value) if isinstance(extent, Constant) else 1) * _work(body)
        case Block() | Allocate() | Let() | If() | While():
            return sum(map(_work, bodies(stmt)))
        case _:
            return 1


def _spread(schedule: Schedule, name: str) -> Schedule:
    """Raises ScheduleError when iterations depend on each other."""
    result = schedule.parallel(name)
    chain = _chain(schedule.function.body, name)
    count, names = 1, []
    for loop in chain:
        if not isinstance(loop.extent, Constant):
            break
        names.append(loop.variable)
        count *= int(loop.extent.value)
        if count >= ITERATIONS:
            break
    fused = schedule
    current = name
    for inner in names[1:]:
        try:
            fused = fused.fuse(current, inner, name=f"{name}.all")
            current = f"{name}.all"
            result = fused.parallel(current)
        except ScheduleError:
            break
    return result


def _chain(body: Stmt, name: str) -> list[For]:
    """The loop called ``name`` and the serial loops directly in it, one in the other."""
    stack = [body]
    while stack:
        stmt = stack.pop()
        if isinstance(stmt, For) and stmt.variable == name:
            found = [stmt]
            while isinstance(found[-1].body, For) and found[-1].body.kind is LoopKind.SERIAL:
                found.append(found[-1].body)
            return found
        stack += bodies(stmt)
    return []
