"""Contractions inside of loops that are scheduled as they are written."""

from collections.abc import Sequence
from dataclasses import replace

from ..define.contractions import combine as define
from ..define.operand import Operand, Result
from ..graph.operators.contractions import Contract
from ..loops.expressions import BinaryFunction
from ..loops.ir import Function, Stmt
from ..schedule.rules.cpu.contraction import choose_tile, tile_reduction
from ..schedule.rules.cpu.dots import find_dots
from ..schedule.rules.cpu.products import products_of
from ..schedule.steps.reduction import Reduction, read_reduction
from ..schedule.steps.register_tile import RegisterTile
from ..schedule.steps.schedule import Schedule
from ..targets.cpu.llvm.intrinsics import INTRINSICS
from .scope import Scope

__all__ = ["combine"]


def combine(
    operator: Contract,
    operands: Sequence[Operand],
    result: Result,
    scope: Scope,
    function: BinaryFunction,
    neutral: int | float | bool,
) -> Stmt:
    """The definition, by tiles in registers, as was decided."""
    body = define(operator, operands, result, scope, function, neutral)
    if 0 in (operator.sizes[label] for label in operator.kept):
        return body
    total = f"acc{scope.counts['acc']}"
    schedule = Schedule.of(Function("part", (), (), body), INTRINSICS)
    nest = read_reduction(schedule.function, total, "contraction")
    products = products_of(nest)
    tile = choose_tile(nest, products, find_dots(nest, products), scope.machine)
    tile = _decided(tile, operator, nest, scope)
    return tile_reduction(schedule, total, scope.machine, (tile,)).function.body


def _decided(tile: RegisterTile, operator: Contract, nest: Reduction, scope: Scope) -> RegisterTile:
    """With what was decided in the place of the rule's choice; notes all of it in ``scope``."""
    loops = [each.variable for each in (*nest.kept, *nest.summed)]
    kept = [x for x in operator.kept if operator.sizes[x] != 1]
    labels = [*kept, *(x for x in operator.summed if operator.sizes[x] != 1)]
    names = dict(zip(labels, loops, strict=True))
    numbers = {name: label for label, name in names.items()}
    decisions = scope.decisions
    tiles = decisions.tiles_of(operator.kept)
    if tiles is not None:
        found = tuple((names[x], n) for x, n in tiles.items() if x in names and n > 1)
        tile = replace(tile, tiles=found)

    def ordered(order: Sequence[str], decided: Sequence[int] | None) -> tuple[str, ...]:
        found = tuple(names[x] for x in decided or () if x in names)
        return found if sorted(found) == sorted(order) else tuple(order)

    tile = replace(tile, loops=ordered(tile.loops, decisions.outer))
    tile = replace(tile, sums=ordered(tile.sums, decisions.summed))
    scope.taken = replace(
        scope.taken,
        tiles=tuple((numbers[name], count) for name, count in tile.tiles),
        outer=tuple(numbers[name] for name in tile.loops),
        summed=tuple(numbers[name] for name in tile.sums),
    )
    return tile
