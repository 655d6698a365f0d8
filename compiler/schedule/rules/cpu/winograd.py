"""Winograd's convolutions: a few rows of tiles through all three steps at a time.

The transforms run in the lanes of blocks of channels, the products by tiles in registers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dovetail.isa.frozen import frozen, replace

from ....loops.affine import Linear
from ....loops.expressions import Constant, Expr, Variable
from ....loops.ir import Allocate, Block, For, Function, If, Let, Stmt, Store
from ....loops.traverse import bodies, loads, variables, walk
from ...steps.guards import at_least_zero, conjuncts
from ...steps.pack_tile import is_packable_tile
from ...steps.reduction import read_reduction
from ...steps.register_tile import RegisterTile
from ...steps.schedule import Schedule, Step
from ...steps.strips import Strips
from ...steps.tile import band
from .contraction import tile_reduction
from .machine import Machine
from .winograd_rows import Tiles, rows_together

__all__ = ["schedule_winograd"]

TILES, ROWS = 2, -3
"""Dimensions of V and M that number the tiles, and of images that number rows."""


def schedule_winograd(schedule: Schedule, machine: Machine, given: Sequence[Step] = ()) -> Schedule:
    """Strips of rows of tiles; the last tiles, partly outside, come separately."""
    steps = _Steps.of(schedule.function)
    if steps is not None:
        chosen = (each.rows for each in given if isinstance(each, Strips))
        rows = next(chosen, None) or rows_together(steps.tiles, machine.threads)
        if rows < steps.tiles.down:
            schedule = schedule.strips(steps.loops, rows, machine.threads > 1)
    while (found := _cut(schedule.function)) is not None:
        schedule = schedule.cut(*found)
    for name, own in _sums(schedule.function, given).items():
        schedule = tile_reduction(schedule, name, machine, own)
    lanes = [name for nest in _nests(schedule.function.body) for name in _lanes(nest)]
    for name in lanes:
        schedule = schedule.vectorize(name)
    for stmt in list(walk(schedule.function.body)):
        if isinstance(stmt, For) and stmt.variable in lanes and is_packable_tile(stmt):
            schedule = schedule.pack_tile(stmt.variable)
    return schedule


@frozen
class _Steps:
    """loops: in the nests of the transforms over rows of tiles, in that of products over tiles."""

    tiles: Tiles
    loops: tuple[str, str, str]

    @staticmethod
    def of(function: Function) -> "_Steps | None":
        """None where there is but one row of tiles."""
        first, second = [each for each in walk(function.body) if isinstance(each, Allocate)][:2]
        v, m = first.buffer, second.buffer
        assert isinstance(second.body, Block)
        transform, products, finish = second.body.statements
        top = _names(load.indices for load in loads(transform) if load.buffer != v)
        bottom = _names(each.indices for each in _stores(finish))
        names = (
            _loop(transform, top),
            _loop(products, _names((each.indices for each in _stores(products)), TILES)),
            _loop(finish, bottom),
        )
        if names[0] is None or names[1] is None or names[2] is None:
            return None
        down = _size(names[0])
        tiles = Tiles(
            v.shape[0],
            down,
            v.shape[TILES] // down,
            (v.shape[1], v.shape[3]),
            (m.shape[1], m.shape[3]),
            (v.dtype.bytes, m.dtype.bytes),
        )
        return _Steps(tiles, (names[0].variable, names[1].variable, names[2].variable))


def _sums(function: Function, given: Sequence[Step]) -> dict[str, Sequence[Step]]:
    """The accumulators of the products, and the tiles that are given for each: those of the first
    are for the others, too, with the names of their own loops.
    """
    found = (each.buffer for each in walk(function.body) if isinstance(each, Allocate))
    names = [buffer.name for buffer in found if not buffer.shape]
    loops = [list(read_reduction(function, name, "products").sizes) for name in names]
    tiles = [each for each in given if isinstance(each, RegisterTile) and each.buffer == names[0]]
    result: dict[str, Sequence[Step]] = {}
    for name, own in zip(names, loops, strict=True):
        to = dict(zip(loops[0], own, strict=True))
        result[name] = [
            replace(
                tile,
                buffer=name,
                loops=tuple(to[each] for each in tile.loops),
                sums=tuple(to[each] for each in tile.sums),
                inner=tuple(to[each] for each in tile.inner),
                vector=to.get(tile.vector, ""),
                tiles=tuple((to[each], count) for each, count in tile.tiles),
            )
            for tile in tiles
            if to.keys() >= {*tile.loops, *tile.sums, *tile.inner}
        ]
    return result


def _cut(function: Function) -> tuple[str, str, int] | None:
    """A nest with conditions, a loop in it, and the first iteration in which they may not hold."""
    for outer in _nests(function.body):
        nest = band(outer)
        conditions = (each.condition for each in walk(outer) if isinstance(each, If))
        tests = [at_least_zero(test) for each in conditions for test in conjuncts(each)]
        sizes = {each.variable: _size(each) for each in nest}
        for loop in nest:
            ends = [_end(form, loop.variable, sizes) for form in tests if form is not None]
            end = min((each for each in ends if each is not None), default=0)
            if 0 < end < sizes[loop.variable]:
                return outer.variable, loop.variable, end
    return None


def _end(form: Linear, loop: str, sizes: Mapping[str, int]) -> int | None:
    """Number of first iterations of ``loop`` that keep ``form`` at 0 or more; None for all."""
    step = form.coefficient(loop)
    if step >= 0:
        return None
    rest = form - Linear(0, {Variable(loop): step})
    if not all(isinstance(each, Variable) and each.name in sizes for each in rest.terms):
        return None
    return rest.limits(sizes)[0] // -step + 1


def _nests(stmt: Stmt) -> Iterator[For]:
    """The outermost loops of transforms: with names for values, and no buffers of their own."""
    if any(isinstance(each, Allocate) for each in walk(stmt)) or not isinstance(stmt, For):
        for each in bodies(stmt):
            yield from _nests(each)
    elif isinstance(band(stmt)[-1].body, Let):
        yield stmt


def _lanes(nest: For) -> list[str]:
    """The loop along rows of memory, if there is one."""
    name = band(nest)[-1].variable
    return [name] if all(name in variables(each.indices[-1]) for each in _stores(nest)) else []


def _names(places: Iterable[tuple[Expr, ...]], axis: int = ROWS) -> set[str]:
    """The variables in a dimension of indices."""
    return {name for indices in places for name in variables(indices[axis])}


def _loop(stmt: Stmt, names: set[str]) -> For | None:
    return next(
        (each for each in walk(stmt) if isinstance(each, For) and each.variable in names), None
    )


def _stores(stmt: Stmt) -> list[Store]:
    return [each for each in walk(stmt) if isinstance(each, Store) and each.buffer.shape]


def _size(loop: For) -> int:
    assert isinstance(loop.extent, Constant), "tiles are as many as shapes say"
    return int(loop.extent.value)
