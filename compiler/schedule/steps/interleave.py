"""Writing rows of a few elements, whose columns come one by one."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.equal import equal
from ...loops.expressions import Buffer, Constant, Expr, Scope, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import (
    Allocate,
    For,
    Function,
    Invoke,
    Let,
    LoopKind,
    Region,
    Stmt,
    Store,
    block,
    loops,
)
from ...loops.legality import carried, describe
from ...loops.rewrite import substitute
from ...loops.traverse import loads, variables, walk
from .lanes import constant_extent
from .site import buffer_names, find_loop, fresh, loop_names, rename_loops

__all__ = ["Interleave"]

Intrinsics = Mapping[str, Intrinsic]


@frozen
class Interleave:
    """Compute columns of short rows in vectors, and have an intrinsic make rows of them.

        for i in 40: for j in 3: y[i, j] = S
        ->  for i.o in 2: alloc c0[16], c1[16], c2[16]
                          for l in 16 vector: c0[l] = S[i = 16 * i.o + l, j = 0]; c1, c2 alike
                          invoke interleave(c0, c1, c2, y[16 * i.o : 16 * i.o + 16, 0 : 3])
            and the same once more from 24 on

    ``loop`` is i, with j directly in it; S reads nothing of y, so some rows may be written twice.
    The intrinsic means: the element of row n and column m is element n of its operand m.
    """

    loop: str
    intrinsic: str

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"interleave of {self.loop}"
        site, loop = find_loop(function, self.loop)
        inner = loop.body
        if not isinstance(inner, For):
            raise ScheduleError(f"{what}: required a loop over columns directly in it")
        extent, width = constant_extent(loop, what), constant_extent(inner, what)
        body, store = inner.body, _store(inner.body, what)
        target, places = store.buffer, (Variable(self.loop), Variable(inner.variable))
        lanes = _lanes(intrinsics.get(self.intrinsic), width, target.dtype, what)
        if store.indices[-2:] != places or extent < lanes:
            raise ScheduleError(f"{what}: required {lanes} rows of {target.name} or more")
        own = {self.loop, inner.variable, *_names(body)}
        if any(own & variables(each) for each in store.indices[:-2]):
            raise ScheduleError(f"{what}: rows of {target.name} are not side by side")
        if any(load.buffer.name == target.name for load in loads(body)):
            raise ScheduleError(f"{what}: {target.name} is read, but some rows are written twice")
        for each in (loop, inner):
            conflict = carried(each, site.bounds, intrinsics=intrinsics)
            if conflict is not None:
                raise ScheduleError(f"{what}: iterations depend on {describe(conflict)}")
        taken = buffer_names(function)
        columns: list[Buffer] = []
        for number in range(width):
            name = fresh(f"{inner.variable}.{number}", taken)
            columns.append(Buffer(name, (lanes,), target.dtype, Scope.REGISTER))
            taken.add(name)
        lane, name = f"{self.loop}.l", f"{self.loop}.o"

        def rows(start: Expr) -> Stmt:
            statements: list[Stmt] = []
            for number, column in enumerate(columns):
                own = _stored_to(column, Variable(lane), body)
                values = {self.loop: start + Variable(lane), inner.variable: _index(number)}
                statements.append(loops(((lane, lanes),), substitute(own, values), LoopKind.VECTOR))
            regions = [Region(column, (_index(0),), (lanes,)) for column in columns]
            outside = store.indices[:-2]
            shape = (*(1 for _ in outside), lanes, width)
            regions.append(Region(target, (*outside, start, _index(0)), shape))
            result = block(*statements, Invoke(self.intrinsic, tuple(regions)))
            for column in columns:
                result = Allocate(column, result)
            return result

        whole, rest = divmod(extent, lanes)
        pieces = [loops(((name, whole),), rows(Variable(name) * lanes))]
        if rest:
            pieces.append(rows(_index(extent - lanes)))
        others = set(loop_names(function.body)) - set(loop_names(loop))
        return site.replaced(rename_loops(block(*pieces), others))


def _lanes(intrinsic: Intrinsic | None, width: int, dtype: DType, what: str) -> int:
    """Rows that the intrinsic makes.  Raises ScheduleError when it does something else."""
    if intrinsic is not None and len(intrinsic.parameters) == width + 1:
        *columns, rows = intrinsic.parameters
        lanes, place = rows.shape[0], Variable("i")
        stores = (Store(rows, (place, _index(n)), each[place]) for n, each in enumerate(columns))
        body = loops((("i", lanes),), block(*stores))
        meaning = intrinsic.meaning
        if rows.dtype is dtype and equal(meaning, replace(meaning, body=body)):
            return lanes
    raise ScheduleError(f"{what}: no such intrinsic for rows of {width} {dtype}")


def _store(body: Stmt, what: str) -> Store:
    """The only statement, which may use names."""
    while isinstance(body, Let):
        body = body.body
    if not isinstance(body, Store):
        raise ScheduleError(f"{what}: required one store of each element")
    return body


def _names(body: Stmt) -> set[str]:
    return {each.variable.name for each in walk(body) if isinstance(each, Let)}


def _stored_to(column: Buffer, place: Expr, body: Stmt) -> Stmt:
    """``body``, whose only store goes to ``column``."""
    if isinstance(body, Let):
        return replace(body, body=_stored_to(column, place, body.body))
    assert isinstance(body, Store)
    return Store(column, (place,), body.value)


def _index(value: int) -> Constant:
    return Constant(value, DType.INT64)
