"""Attention without tensor cores: tiles of rows and columns in shared memory and in registers.

A thread has four rows of a tile, and an eighth of its columns: of the scores, and then of the
result.  Tiles of the operands are in shared memory, as are scores and what belongs to rows.
"""

from collections.abc import Mapping

from ....errors import ScheduleError
from ....loops.expressions import Scope
from ....loops.ir import For, LoopKind
from ....loops.traverse import walk
from ...steps.schedule import Schedule

__all__ = ["in_tiles"]

ITEMS, THREADS = 4, 8
"""Rows of a thread, and threads for the columns."""
DEPTH = 16
"""Summed elements at a time."""
SUM_OF_SCORES, RESULT = "sum0", "acc0"


def in_tiles(schedule: Schedule, loops: Mapping[str, int], q: str, k: str, v: str) -> Schedule:
    """The loops of ``define/attention.py`` over threads; q, k, v: buffers of the operands.

    Raises ScheduleError where the values do not fill tiles.
    """
    rows, columns, values = loops["r2"], loops["c0"], loops["e2"]
    if values % THREADS:
        raise ScheduleError(f"attention of values of {values}: required a multiple of {THREADS}")
    threads = rows // ITEMS * THREADS
    schedule = schedule.lift(SUM_OF_SCORES, "c0").lift(SUM_OF_SCORES, "r2")
    schedule = schedule.fission("c0", 1, "c0.sum").fission("r2", 1, "r2.sum")
    schedule = schedule.fission("c0.sum", 1, "c0.end").fission("r2.sum", 1, "r2.end")
    schedule = schedule.widen("k0", DEPTH).split("k0", DEPTH, "exact", "k0.steps", "k0.in")
    schedule = schedule.reorder("k0.steps", "r2.sum", "c0.sum", "k0.in")
    schedule = _staged(schedule, q, "k0.steps", ("r2.sum", "k0.in"), threads)
    schedule = _staged(schedule, k, "k0.steps", ("c0.sum", "k0.in"), threads)
    for end in ("", ".end"):
        schedule = _split(schedule, f"r2{end}", f"c0{end}", columns)
    schedule = _split(schedule, "r2.sum", "c0.sum", columns, "k0.in")
    schedule = schedule.split("c4", DEPTH, "exact", "c4.steps", "c4.in")
    schedule = schedule.reorder("c4.steps", "r7", "e2", "c4.in")
    schedule = _staged(schedule, v, "c4.steps", ("c4.in", "e2"), threads)
    for row, column in (("r1", "e0"), ("r6", "e1"), ("r8", "e3")):
        schedule = _split(schedule, row, column, values)
    schedule = _split(schedule, "r7", "e2", values, "c4.in")
    for name, width in ((SUM_OF_SCORES, columns), (RESULT, values)):
        layout = ((0, ITEMS), (2, width // THREADS))
        schedule = schedule.set_layout(name, layout, (0, 2, 1, 3))
    for name in ("r0", "r3", "r4", "r5"):
        schedule = schedule.bind(name, LoopKind.THREAD)
    for name in (SUM_OF_SCORES, RESULT):
        schedule = schedule.set_scope(name, Scope.REGISTER)
    schedule = schedule.barrier("r3").barrier("r5", after=True)
    for name in ("r2.sum.thread", "r7.thread"):
        schedule = schedule.barrier(name).barrier(name, after=True)
    return schedule


def _split(
    schedule: Schedule, row: str, column: str, columns: int, summed: str | None = None
) -> Schedule:
    """Loops over a tile as loops over threads, and each thread's rows and columns.

    summed: a loop in them that comes between.
    """
    for name, size in ((row, ITEMS), (column, columns // THREADS)):
        schedule = schedule.split(name, size, "exact", f"{name}.thread", f"{name}.item")
    threads, items = ([f"{row}.{part}", f"{column}.{part}"] for part in ("thread", "item"))
    schedule = schedule.reorder(*threads, *([summed] if summed else []), *items)
    for name in threads:
        schedule = schedule.bind(name, LoopKind.THREAD)
    for name in items:
        schedule = schedule.unroll(name)
    return schedule


def _staged(
    schedule: Schedule, buffer: str, loop: str, dimensions: tuple[str, ...], threads: int
) -> Schedule:
    """A tile of a buffer in shared memory, which all threads of the block copy together."""
    tile = f"{buffer}.tile"
    schedule = schedule.stage(buffer, loop, dimensions, Scope.SHARED, tile)
    whole, *others = (
        each.variable
        for each in walk(schedule.function.body)
        if isinstance(each, For) and each.variable.startswith(f"{tile}.")
    )
    for number, name in enumerate(others):
        schedule, whole = schedule.fuse(whole, name, f"{tile}.all{number}"), f"{tile}.all{number}"
    schedule = schedule.split(whole, threads, "guard", f"{tile}.round", f"{tile}.thread")
    schedule = schedule.reorder(f"{tile}.thread", f"{tile}.round")
    return schedule.bind(f"{tile}.thread", LoopKind.THREAD)
