"""The rule that spreads a function over the threads of a CPU.

Of each nest at the top of the function, the outermost loops become one parallel loop:

    for i in N: for j in M: S   ->
        for i.all in N * M parallel: let i = i.all // M: let j = i.all % M: S

as long as they are nested in each other directly, until there are enough iterations for all
threads; where iterations depend on each other the nest stays as it is.
"""

from collections.abc import Mapping, Sequence
from math import prod

from dovetail.isa.frozen import replace

from ...errors import ScheduleError
from ...loops.expressions import Binary, BinaryFunction, Constant, Expr, Variable, as_index
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, Block, For, Function, If, Let, LoopKind, Stmt, Store, While
from ...loops.rewrite import with_bodies
from ...loops.traverse import bodies, variables, walk
from .schedule import Schedule

__all__ = ["IMAGE_RANK", "over_threads"]

ITERATIONS = 64
"""Iterations that are enough for threads to share them out evenly."""

FEW_ITERATIONS, LEAST_ITERATION = 16, 1 << 10
"""Fewer iterations are enough where more would have less work than this each: finding an
iteration's place takes time, too.
"""

LEAST_WORK = 1 << 15
"""Executions of innermost statements at least; for fewer, waking threads would take longer than the
work.
"""

IMAGE_RANK, LEAST_POSITIONS = 5, 100
"""Dimensions of images in blocks of channels, float[N, C / B, H, W, B], and the places from which
rows are shared."""


def over_threads(function: Function, intrinsics: Mapping[str, Intrinsic] | None = None) -> Function:
    """The function with parallel loops, where that is legal and pays.

    intrinsics: that it may call; others are taken to write all their operands.
    """
    for name in _roots(function.body):
        function = _spread(function, name, intrinsics or {})
    return function


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
    """Number of statements without a body that run; loops without a constant extent count as 1."""
    match stmt:
        case For(extent=extent, body=body):
            return (int(extent.value) if isinstance(extent, Constant) else 1) * _work(body)
        case Block() | Allocate() | Let() | If() | While():
            return sum(map(_work, bodies(stmt)))
        case _:
            return 1


def _spread(function: Function, name: str, intrinsics: Mapping[str, Intrinsic]) -> Function:
    """As many loops as are wanted in one, or fewer where iterations depend on each other."""
    extents: list[int] = []
    nest = _chain(function.body, name)
    chain = _rows_first(nest)
    for loop in chain:
        found, small = prod(extents), _work(loop.body) < LEAST_ITERATION
        if not isinstance(loop.extent, Constant) or found >= (
            FEW_ITERATIONS if small else ITERATIONS
        ):
            break
        extents.append(int(loop.extent.value))
    for count in range(len(extents), 1, -1):
        whole = _fused(chain[:count], extents[:count], nest[count - 1].body)
        fused = replace(function, body=_replaced(function.body, nest[0], whole))
        try:
            return Schedule.of(fused, intrinsics).parallel(whole.variable).function
        except ScheduleError:
            continue
    try:
        return Schedule.of(function, intrinsics).parallel(name).function
    except ScheduleError:
        return function


def _rows_first(chain: list[For]) -> list[For]:
    """``chain`` with the rows of images outside of their blocks of channels.

    The images are float[N, C / B, H, W, B], large enough for layers to be shared by rows.
    """
    if len(chain) < 2:
        return chain
    first, second = chain[0].variable, chain[1].variable
    for stmt in walk(chain[1].body):
        if isinstance(stmt, Store) and len(stmt.indices) == IMAGE_RANK:
            _, channels, rows, _, _ = (variables(each) for each in stmt.indices)
            large = prod(stmt.buffer.shape[2:4]) >= LEAST_POSITIONS
            if large and first in channels and second in rows:
                return [chain[1], chain[0], *chain[2:]]
    return chain


def _fused(chain: Sequence[For], extents: Sequence[int], body: Stmt) -> For:
    """One loop over ``body`` in place of ``chain``."""
    whole = Variable(f"{chain[0].variable}.all")
    for number in reversed(range(len(chain))):
        after = prod(extents[number + 1 :])
        value: Expr = whole // after if after > 1 else whole
        if number:
            value = Binary(BinaryFunction.MOD, value, as_index(extents[number]))
        body = Let(Variable(chain[number].variable), value, body)
    return For(whole.name, as_index(prod(extents)), LoopKind.SERIAL, body)


def _replaced(body: Stmt, old: For, new: For) -> Stmt:
    """``body`` with one loop in place of another, which is in no loop."""
    if isinstance(body, For):
        return new if body is old else body
    return with_bodies(body, tuple(_replaced(each, old, new) for each in bodies(body)))


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
