"""Going over two dimensions by tiles."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.expressions import Constant, Expr, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import For, Function, Stmt, block, loops
from ...loops.legality import carried, describe
from ...loops.rewrite import substitute
from .lanes import constant_extent, pieces
from .site import find_loop, loop_names, rename_loops

__all__ = ["Tile", "band"]

Intrinsics = Mapping[str, Intrinsic]


@frozen
class Tile:
    """Go over two loops of a nest by tiles of ``size`` times ``size``, all other loops outside.

        for i in 40: for j in 32: y[i, j] = x[j, i]
        ->  for i.o in 2: for j.o in 2: for i.i in 16: for j.i in 16: y[16 * i.o + i.i, ...] = ...
            for j.o in 2: for i.i in 8: for j.i in 16: y[32 + i.i, ...] = ...

    ``rows`` is the outer one in a tile.  ``nest`` is the outermost loop; each loop is directly in
    the one before it, ``columns`` is the innermost, and no two iterations meet in memory.
    """

    nest: str
    rows: str
    columns: str
    size: int

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"tile of {self.rows} and {self.columns}"
        site, outer = find_loop(function, self.nest)
        nest = band(outer)
        extents = {loop.variable: constant_extent(loop, what) for loop in nest}
        rows = extents.keys() - {self.columns}
        if nest[-1].variable != self.columns or self.rows not in rows or self.size < 1:
            raise ScheduleError(f"{what}: they are not two loops of a nest, the second innermost")
        for loop in nest:
            conflict = carried(loop, site.bounds, intrinsics=intrinsics)
            if conflict is not None:
                raise ScheduleError(
                    f"{what}: iterations of {loop.variable} touch the same element of "
                    f"{describe(conflict)}"
                )
        body, others = nest[-1].body, (self.rows, self.columns)
        statements: list[Stmt] = []
        for row in pieces(extents[self.rows], self.size):
            for column in pieces(extents[self.columns], self.size):
                outside, inside, values = [], [], dict[str, Expr]()
                for name, (start, count, size) in zip(others, (row, column), strict=True):
                    outside += [(f"{name}.o", count)] if count > 1 else []
                    inside.append((f"{name}.i", size))
                    first = Variable(f"{name}.o") * size if count > 1 else _index(0)
                    values[name] = _sum(first, _index(start), Variable(f"{name}.i"))
                tiled = loops((*outside, *inside), substitute(body, values))
                statements.append(tiled)
        rest = tuple((name, size) for name, size in extents.items() if name not in others)
        tiled = loops(rest, block(*statements))
        taken = set(loop_names(function.body)) - set(loop_names(outer))
        return site.replaced(rename_loops(tiled, taken))


def band(outer: For) -> list[For]:
    """The loop and those in it, each directly in the one before it."""
    found = [outer]
    while isinstance(found[-1].body, For):
        found.append(found[-1].body)
    return found


def _index(value: int) -> Expr:
    return Constant(value, DType.INT64)


def _sum(*terms: Expr) -> Expr:
    first, *rest = (term for term in terms if term != _index(0))
    for term in rest:
        first = first + term
    return first
