"""Numbers of rows in loop programs: folds of all channels of a pixel, in PAR for all lanes."""

from collections.abc import Callable

from dovetail.isa.frozen import replace

from ....loops.expressions import BinaryFunction, Buffer, Constant, Expr, Load, Scope, Variable
from ....loops.ir import Allocate, Stmt, Store, Update, block, loops
from .activation import Activation
from .definition import Place
from .plan_activations import spare_columns

__all__ = ["LESS", "OVER", "SQUARES", "over_lanes", "row_place", "widened_rows"]

LESS, OVER, SQUARES = "less", "over", "squares"
"""The buffers of a row's bias, of its scale, and of the sum of its squares."""


def over_lanes(
    target: Buffer,
    blocks: int,
    lanes: int,
    function: BinaryFunction,
    start: Constant,
    value: Expr,
    finish: Callable[[Expr], Expr],
) -> Stmt:
    """``target[y, x, l] = finish(fold of value over all blocks c and lanes i)``."""
    prefix, total = f"{target.name}.", Buffer("total", (), start.dtype, Scope.REGISTER)
    folded = loops(
        ((f"{prefix}c", blocks), (f"{prefix}i", lanes)), Update(total, (), function, value)
    )
    result = finish(Load(total, ()))
    place = tuple(Variable(prefix + axis) for axis in ("y", "x", "l"))
    body = Allocate(total, block(Store(total, (), start), folded, Store(target, place, result)))
    sizes = zip(("y", "x", "l"), target.shape, strict=True)
    return loops(tuple((prefix + axis, size) for axis, size in sizes), body)


def widened_rows(x: Activation, output: Activation) -> Activation:
    """``output`` as wide as loops over its rows may be: with columns that both have behind it."""
    spare = spare_columns(output.width)
    if output.fill is not None or spare > min(x.halo[3], output.halo[3]):
        return output
    return replace(output, width=output.width + spare)


def row_place(target: str) -> Place:
    """Where the loops over a row's blocks and lanes are, for the buffer ``target``."""
    return Place(*(Variable(f"{target}.{axis}") for axis in ("c", "y", "x", "i")))
