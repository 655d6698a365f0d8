"""Sums of products: a tile of results in registers, by the instructions that fit the operands."""

from collections.abc import Iterator, Sequence

from dovetail.isa.frozen import frozen

from ....loops.expressions import Scope
from ....loops.ir import Allocate, Block, For, LoopKind, Stmt
from ....loops.traverse import bodies, walk
from ...steps.pack_stores import is_packable
from ...steps.reduction import Reduction, read_reduction
from ...steps.register_tile import RegisterTile
from ...steps.schedule import Schedule, Step
from ...steps.start_from import addend
from .costly import is_costly
from .dots import Dots, find_dots
from .loop_order import order_output, order_summed
from .machine import Machine
from .products import Products, products_of
from .streams import find_stream
from .tiling import choose_rows, choose_tiling

__all__ = ["choose_tile", "schedule_contraction", "tile_reduction"]


def schedule_contraction(
    schedule: Schedule, machine: Machine, given: Sequence[Step] = ()
) -> Schedule:
    """Each sum of the definition by tiles."""
    for stmt in walk(schedule.function.body):
        if isinstance(stmt, Allocate):
            schedule = tile_reduction(schedule, stmt.buffer.name, machine, given)
    return schedule


def tile_reduction(
    schedule: Schedule, buffer: str, machine: Machine, given: Sequence[Step] = ()
) -> Schedule:
    """The reduction to ``buffer`` by tiles; by a tile that is given, if it is for this one.

    Raises ScheduleError where there is no such reduction.
    """
    nest = read_reduction(schedule.function, buffer, f"tiles of {buffer}")
    products = products_of(nest)
    dots = find_dots(nest, products)
    packs = products if dots is None else dots.packs
    tile = next((x for x in given if isinstance(x, RegisterTile) and x.buffer == buffer), None)
    if tile is None:
        tile = choose_tile(nest, products, dots, machine)
    if dots is not None and not tile.staged and addend(nest) is not None:
        schedule = schedule.start_from(buffer)
    schedule = schedule.register_tile(tile)
    stream = find_stream(packs, tile.vector, machine.streamed_bytes)
    parts = list(_parts(schedule.function.body, buffer))
    for part in parts if stream is not None else ():
        assert stream is not None
        moving = _moving(part, stream.moving)
        if part.sums and moving is not None:
            schedule = schedule.prefetch(part.sums[-1], stream.buffer, moving)
    if dots is None:
        return schedule
    for part in parts:
        schedule = schedule.tensorize(part.lanes, dots.intrinsic)
        for name in part.sums if dots.unrolled else ():
            schedule = schedule.unroll(name)
        if not tile.staged and is_packable(part.finish):
            assert isinstance(part.finish, For)
            schedule = schedule.pack_stores(part.finish.variable)
    return schedule


def choose_tile(
    nest: Reduction, products: Products, dots: Dots | None, machine: Machine
) -> RegisterTile:
    """The tile of least estimated time."""
    if dots is None:
        packs, tiling = products, choose_tiling(products, machine)
    else:
        choose = choose_rows if dots.unrolled else choose_tiling
        packs, tiling = dots.packs, choose(dots.packs, machine.of_dots())
    vector = tiling.vector or ""
    tiles = tuple((name, count) for name, count in tiling.tiles.items() if count > 1)
    return RegisterTile(
        nest.register.name,
        tuple(order_output(packs, vector, machine)),
        tuple(order_summed(packs, vector)),
        () if dots is None else (dots.near,),
        vector,
        tiling.lanes,
        tiles,
        bool(tiles) and is_costly(nest.finish),
    )


@frozen
class _Part:
    """One of the tiles of a reduction; loops by their names.

    around: the loops that it is in.  sums, unrolled, lanes: the loops of its sum.
    """

    around: tuple[str, ...]
    sums: tuple[str, ...]
    unrolled: tuple[str, ...]
    lanes: str
    finish: Stmt


def _parts(stmt: Stmt, buffer: str, around: tuple[str, ...] = ()) -> Iterator[_Part]:
    """The tiles in ``stmt`` that keep ``buffer`` in registers."""
    if isinstance(stmt, For):
        around = (*around, stmt.variable)
    if isinstance(stmt, Allocate) and isinstance(stmt.body, Block) and _is_tile(stmt, buffer):
        _, total, finish = stmt.body.statements[:3]
        names: dict[LoopKind, list[str]] = {kind: [] for kind in LoopKind}
        while isinstance(total, For) and not names[LoopKind.VECTOR]:
            names[total.kind].append(total.variable)
            total = total.body
        sums, unrolled = names[LoopKind.SERIAL], names[LoopKind.UNROLLED]
        yield _Part(around, tuple(sums), tuple(unrolled), "".join(names[LoopKind.VECTOR]), finish)
    else:
        for body in bodies(stmt):
            yield from _parts(body, buffer, around)


def _is_tile(stmt: Allocate, buffer: str) -> bool:
    return stmt.buffer.scope is Scope.REGISTER and _is_own(stmt.buffer.name, buffer)


def _moving(part: _Part, name: str) -> str | None:
    """The loop over the values of loop ``name`` in a tile, or else over tiles; None for one."""
    inside = [each for each in part.unrolled if _is_own(each, f"{name}.u")]
    found = inside or [each for each in part.around if _is_own(each, name)]
    return found[-1] if found else None


def _is_own(name: str, of: str) -> bool:
    """True if ``name`` is ``of``, or the same with a number."""
    return name == of or (name.startswith(f"{of}.") and name[len(of) + 1 :].isdigit())
