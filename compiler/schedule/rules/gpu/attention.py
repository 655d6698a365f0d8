"""Attention: a block of threads takes some rows of queries, whose scores stay in the block.

    for o: for rows: for r0: ...; for columns: for r2: ...; for r8: ...
    ->   for o, rows (blocks): for r0 (threads): ...; for columns: for r2 (threads): ...

Where operands have 16 bits, both products are on tensor cores, and scores and weights in registers
(``attention_fragments.py``); or, where sizes do not suit, tiles of the operands, and scores and
weights, are in shared memory, the result in registers, and warps have 16 rows each.  Else they
go by tiles of threads (``attention_tiles.py``).  Where values do not fill those, one thread has a
row: all that belongs to the row is its own, and no thread waits for another.
"""

from collections.abc import Mapping
from contextlib import suppress

from ....errors import ScheduleError
from ....loops.expressions import Binary, Load, Scope
from ....loops.intrinsic import Intrinsic
from ....loops.ir import Allocate, For, LoopKind, Update
from ....loops.traverse import variables, walk
from ...steps.schedule import Schedule
from ...steps.site import find_loop
from .attention_fragments import in_fragments
from .attention_tiles import in_tiles
from .choice import DEFAULT, Choice
from .product import factor
from .tiles import copied
from .warps import PADDING_BYTES, SIDE, Nest, TileShape, in_registers, in_warps

__all__ = ["schedule_attention"]

OWN = ("best", "total", "factor", "score", "weight")
"""Buffers of ``define/attention.py`` with a dimension for rows, beside the result."""
SUM_OF_SCORES, RESULT = "sum0", "acc0"


def schedule_attention(schedule: Schedule, choice: Choice = DEFAULT) -> Schedule:
    """As above.

    Raises ScheduleError where the loops are not those of ``define/attention.py``, or do not suit a
    choice.
    """
    loops = {
        each.variable: int(getattr(each.extent, "value", 0))
        for each in walk(schedule.function.body)
        if isinstance(each, For)
    }
    if "rows0" not in loops:
        raise ScheduleError("attention: required a loop over blocks of rows")
    for name in list(loops)[: list(loops).index("rows0") + 1]:
        schedule = schedule.bind(name, LoopKind.BLOCK)
    if choice.rows:
        return in_fragments(schedule, loops, choice)
    with suppress(ScheduleError):
        return in_fragments(schedule, loops)
    with suppress(ScheduleError):
        return _on_tensor_cores(schedule, loops)
    with suppress(ScheduleError):
        _require_one(loops)
        names = (
            *(each.buffer.name for each in _operands(schedule, "k0", "r2", "c0")[:2]),
            _operands(schedule, "c4", "r7", "e2")[1].buffer.name,
        )
        return _in_scope(in_tiles(schedule, loops, *names), OWN, Scope.SHARED)
    for name in loops:
        if name.startswith("r") and name != "rows0":
            schedule = schedule.bind(name, LoopKind.THREAD)
    return _in_scope(schedule, (*OWN, "acc"), Scope.REGISTER)


def _in_scope(schedule: Schedule, stems: tuple[str, ...], scope: Scope) -> Schedule:
    for stmt in walk(schedule.function.body):
        if isinstance(stmt, Allocate) and stmt.buffer.name.rstrip("0") in stems:
            schedule = schedule.set_scope(stmt.buffer.name, scope)
    return schedule


def _on_tensor_cores(schedule: Schedule, loops: Mapping[str, int]) -> Schedule:
    _require_one(loops)
    rows, columns, values = loops["r2"], loops["c0"], loops["e2"]
    if rows % SIDE or columns % SIDE or values % SIDE:
        raise ScheduleError(f"attention of {rows}, {columns}, {values}: required multiples of 16")
    q, k, _ = _operands(schedule, "k0", "r2", "c0")
    weight, v, apart = _operands(schedule, "c4", "r7", "e2")
    intrinsic = _intrinsic(schedule, (q, k))
    if _intrinsic(schedule, (weight, v)) != intrinsic:
        raise ScheduleError("attention on tensor cores: required q, k and v of one type")
    depth = intrinsic.parameters[0].shape[-1]
    scores, result = (TileShape(rows, each, rows // SIDE, 1) for each in (columns, values))
    schedule = _scores(schedule, scores, intrinsic, loops["k0"])
    parts = depth * (2 if columns % (2 * depth) == 0 else 1)
    schedule = schedule.split("c4", parts, "exact", "c4.steps", "c4.in")
    schedule = schedule.reorder("c4.steps", "r7", "e2", "c4.in")
    padding = PADDING_BYTES // v.dtype.bytes
    tile = f"{v.buffer.name}.tile"
    schedule = schedule.stage(
        v.buffer.name, "c4.steps", ("e2", "c4.in"), Scope.SHARED, tile, padding
    )
    schedule = schedule.split("c4.in", depth, "exact", "c4.part", "c4.item")
    for row, element in (("r1", "e0"), ("r6", "e1"), ("r7", "e2"), ("r8", "e3")):
        for name in (row, element):
            schedule = schedule.bind(name, LoopKind.THREAD)
        summed = ("c4.part", "c4.item") if row == "r7" else None
        schedule = in_warps(schedule, Nest((row, element), (row, element)), result, summed)
    schedule = in_registers(schedule, RESULT, result).tensorize("r7.half", intrinsic.name)
    schedule = copied(schedule, tile, padding, result.threads, apart).unroll("c4.part")
    for name in ("r0", "r3", "r4", "r5"):
        schedule = schedule.bind(name, LoopKind.THREAD)
    schedule = _in_scope(schedule, OWN, Scope.SHARED).set_scope(RESULT, Scope.REGISTER)
    return schedule.barrier("r3").barrier("r5", after=True).barrier("r7.warp")


def _require_one(loops: Mapping[str, int]) -> None:
    """Raise ScheduleError for several labels of depth or of values, or none."""
    if {"k0", "e2", "c4"} - set(loops) or {"k1", "e4"} & set(loops):
        raise ScheduleError("attention in tiles: required one depth, one label of values")


def _scores(schedule: Schedule, tile: TileShape, intrinsic: Intrinsic, length: int) -> Schedule:
    """The products of queries and keys, and what follows in each score."""
    depth = intrinsic.parameters[0].shape[-1]
    whole = depth * (2 if length > depth else 1)
    q, k, apart = _operands(schedule, "k0", "r2", "c0")
    schedule = schedule.widen("k0", whole).split("k0", whole, "exact", "k0.steps", "k0.in")
    for name in ("r2", "c0"):
        schedule = schedule.bind(name, LoopKind.THREAD)
    schedule = schedule.lift(SUM_OF_SCORES, "c0").lift(SUM_OF_SCORES, "r2")
    schedule = schedule.fission("c0", 1, "c0.sum").fission("r2", 1, "r2.sum")
    schedule = schedule.fission("c0.sum", 1, "c0.end").fission("r2.sum", 1, "r2.end")
    schedule = schedule.reorder("k0.steps", "r2.sum", "c0.sum", "k0.in")
    padding = PADDING_BYTES // q.dtype.bytes
    copies = ((q, "r2.sum", False), (k, "c0.sum", apart))
    for load, loop, _ in copies:
        name = load.buffer.name
        schedule = schedule.stage(
            name, "k0.steps", (loop, "k0.in"), Scope.SHARED, f"{name}.tile", padding
        )
    schedule = schedule.split("k0.in", depth, "exact", "k0.part", "k0.item")
    for end in ("", ".sum", ".end"):
        nest = Nest((f"r2{end}", f"c0{end}"), ("r2", "c0"), end)
        summed = ("k0.part", "k0.item") if end == ".sum" else None
        schedule = in_warps(schedule, nest, tile, summed)
    schedule = in_registers(schedule, SUM_OF_SCORES, tile)
    schedule = schedule.tensorize("r2.half.sum", intrinsic.name)
    for load, _, turned in copies:
        schedule = copied(schedule, f"{load.buffer.name}.tile", padding, tile.threads, turned)
    schedule = schedule.unroll("k0.part").set_scope(SUM_OF_SCORES, Scope.REGISTER)
    schedule = schedule.barrier("r2.warp.sum")
    # Before the tiles of a next step; the next columns come after other barriers.
    return schedule.barrier("r2.warp.sum", after=True) if length > whole else schedule


def _operands(schedule: Schedule, summed: str, row: str, column: str) -> tuple[Load, Load, bool]:
    """Loads of a sum's factors, the rows' first; True if neighbours in the memory of the other are
    of two columns.
    """
    _, loop = find_loop(schedule.function, summed)
    for stmt in walk(loop):
        if isinstance(stmt, Update) and isinstance(stmt.value, Binary):
            found = [factor(stmt.value.left), factor(stmt.value.right)]
            left, right = found
            if left is None or right is None:
                break
            if not any(row in variables(each) for each in left.indices):
                left, right = right, left
            return left, right, column in variables(right.indices[-1])
    raise ScheduleError(f"attention: the sum over {summed} is not one of products")


def _intrinsic(schedule: Schedule, operands: tuple[Load, Load]) -> Intrinsic:
    """The product of the operands' types.  Raises ScheduleError where there is none."""
    wanted = tuple(each.dtype for each in operands)
    for each in schedule.intrinsics.values():
        if tuple(buffer.dtype for buffer in each.meaning.inputs) == wanted:
            return each
    raise ScheduleError(f"attention on tensor cores: no products of {', '.join(wanted)}")
