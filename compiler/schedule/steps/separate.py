"""Reducing windows along all their dimensions but the last, and then along the last."""

from collections.abc import Mapping, Sequence

from dovetail.isa.frozen import frozen, replace

from ...errors import ScheduleError
from ...loops.affine import Linear, linear
from ...loops.expressions import Buffer, Constant, Expr, Load, Scope, Select, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, Block, For, Function, Stmt, Store, Update, block, loops
from ...loops.rewrite import map_expr
from ...loops.traverse import loads, variables, written
from .guards import at_least_zero, conjuncts, guard, together
from .lanes import constant_extent
from .rfactor import identity
from .site import buffer_names, find_loop, fresh, loop_names, rename_loops
from .tile import band

__all__ = ["Reduction", "Row", "Separate"]

Intrinsics = Mapping[str, Intrinsic]


@frozen
class Separate:
    """Reduce windows to rows first, which neighbouring windows have in common, then along the rows.

        for i: for j in J: { alloc a[]; a[] = 0
                             for k: for m in M:
                               a[] add= select(0 <= j + m - 1, x[i + k, j + m - 1], 0)
                             y[i, j] = a[] }
        ->  for i: alloc r[J + M - 1]: r[0] = 0
                   for p: { alloc b[]; b[] = 0; for k: b[] add= x[i + k, p]; r[p + 1] = b[] }
                   for j in J: { alloc a[]; a[] = 0; for m in M: a[] add= r[j + m]; y[i, j] = a[] }

    ``loop`` is the outermost loop that the rows are for, ``last`` is j and ``tap`` is m, the
    innermost loop of the window.  Both are in the indices of what is read only together, by the
    same steps everywhere, and nothing in the loop changes it.  The reduction begins with what
    changes no result; where ``tap`` is guarded, a row has that.  The loops over rows are called
    ``j.row`` and, where the row has what changes no result, ``j.edge``.  The order of float
    additions changes.
    """

    loop: str
    last: str
    tap: str
    name: str = ""

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"separate of {self.tap}"
        site, outer = find_loop(function, self.loop)
        nest = _chain(outer, self.last, what)
        inner = [(loop.variable, constant_extent(loop, what)) for loop in nest[:-1]]
        found = Reduction.of(nest[-1].body)
        if found is None or found.taps[-1].variable != self.tap:
            raise ScheduleError(f"{what}: it is not the innermost loop of one reduction")
        first, taps, update = found.first, found.taps, found.update
        read = {load.buffer.name for load in loads(found.taps[0])}
        if found.accumulator.shape or read & written(outer):
            raise ScheduleError(f"{what}: what it reads changes, or its result has dimensions")
        tests = conjuncts(guard(update))
        value = update.value.chosen if isinstance(update.value, Select) and tests else update.value
        row = Row.of(value, self.last, self.tap, what)
        count, size = constant_extent(nest[-1], what), constant_extent(taps[-1], what)
        length = row.step * (count - 1) + row.dilation * (size - 1) + 1
        low, high = row.inside(tests, length)
        kept = [each for each in tests if not row.names & variables(each)]
        neutral = Constant(identity(update.function, update.buffer.dtype), update.buffer.dtype)
        if first.value != neutral:
            raise ScheduleError(f"{what}: it does not begin with {neutral.value}")
        taken = buffer_names(function)
        shape = (*(extent for _, extent in inner), length)
        rows = Buffer(self.name or fresh("rows", taken), shape, neutral.dtype, Scope.LOCAL)
        total = replace(update.buffer, name=fresh(f"{update.buffer.name}.row", taken))
        along, at = Variable(f"{self.last}.row"), tuple(Variable(name) for name, _ in inner)
        place = along + low
        moved = map_expr(value, lambda node: row.moved(node, place))
        if row.names & variables(moved) or any(row.names & variables(x.extent) for x in taps):
            raise ScheduleError(f"{what}: what is read depends on it alone")
        condition = together(kept)
        if condition is not None:
            moved = Select(condition, moved, neutral)
        edge = Variable(f"{self.last}.edge")
        edges = [
            loops((*inner, (edge.name, end - start)), Store(rows, (*at, edge + start), neutral))
            for start, end in ((0, low), (high, length))
            if start < end
        ]
        down: Stmt = Store(rows, (*at, place), moved)
        if taps[:-1]:
            outer_taps = tuple((loop.variable, loop.extent) for loop in taps[:-1])
            reduce = loops(outer_taps, replace(update, buffer=total, value=moved))
            finish = Store(rows, (*at, place), total[()])
            down = Allocate(total, block(replace(first, buffer=total), reduce, finish))
        own = Variable(self.last) * row.step + Variable(self.tap) * row.dilation
        across = block(
            first, replace(taps[-1], body=replace(update, value=rows[(*at, own)])), *found.rest
        )
        body = block(
            *edges,
            loops((*inner, (along.name, high - low)), down),
            loops((*inner, (self.last, count)), Allocate(found.accumulator, across)),
        )
        others = set(loop_names(function.body)) - set(loop_names(outer))
        return site.simplified(rename_loops(Allocate(rows, body), others))


@frozen
class Row:
    """Where windows read along a row: at ``step * last + dilation * tap``, and a constant."""

    last: str
    tap: str
    step: int
    dilation: int

    @staticmethod
    def of(value: Expr, last: str, tap: str, what: str) -> "Row":
        """By the first index of a load in ``value`` that has both."""
        for load in loads(value):
            for form in map(linear, load.indices):
                step, dilation = form.coefficient(last), form.coefficient(tap)
                if step > 0 and dilation > 0:
                    return Row(last, tap, step, dilation)
        raise ScheduleError(f"{what}: it and {last} are in no index together")

    @property
    def names(self) -> frozenset[str]:
        """Variables of both loops."""
        return frozenset({self.last, self.tap})

    def times(self, form: Linear) -> int | None:
        """The factor of the place in a row in ``form``; None if it is in none."""
        last, tap = form.coefficient(self.last), form.coefficient(self.tap)
        return last // self.step if last * self.dilation == tap * self.step else None

    def inside(self, tests: Sequence[Expr], length: int) -> tuple[int, int]:
        """The places from the first to before the last that pass the tests of the row."""
        low, high = 0, length
        for test in (each for each in tests if self.names & variables(each)):
            form = at_least_zero(test)
            times = None if form is None else self.times(form)
            rest = None if form is None else self._without(form, times or 0).value
            if times not in (1, -1) or rest is None:
                raise ScheduleError(f"separate of {self.tap}: a guard is not of a place in the row")
            if times == 1:
                low = max(low, -rest)
            else:
                high = min(high, rest + 1)
        return low, high

    def moved(self, node: Expr, place: Expr) -> Expr:
        """``node``; where it is a load, at ``place`` of the row."""
        if not isinstance(node, Load):
            return node
        indices = []
        for index in node.indices:
            form = linear(index)
            times = self.times(form)
            if not times:
                indices.append(index)
                continue
            rest = self._without(form, times).to_expr()
            indices.append(rest + (place * times if times != 1 else place))
        return Load(node.buffer, tuple(indices))

    def _without(self, form: Linear, times: int) -> Linear:
        if not times:
            return form
        own: dict[Expr, int] = {
            Variable(self.last): self.step * times,
            Variable(self.tap): self.dilation * times,
        }
        return form - Linear(0, own)


def _chain(outer: For, last: str, what: str) -> list[For]:
    """The loops from ``outer`` to ``last``, each directly in the one before it."""
    found = [outer]
    while found[-1].variable != last:
        inner = found[-1].body
        if not isinstance(inner, For):
            raise ScheduleError(f"{what}: {last} is not the innermost of a nest of results")
        found.append(inner)
    return found


@frozen
class Reduction:
    """The only thing done: an accumulator, its first value, loops, an update in them, and the rest
    that follows.
    """

    accumulator: Buffer
    first: Store
    taps: list[For]
    update: Update
    rest: list[Stmt]

    @staticmethod
    def of(body: Stmt) -> "Reduction | None":
        """None where something else is done."""
        match body:
            case Allocate(body=Block(statements=(Store() as first, For() as loop, *rest))):
                taps = band(loop)
                update = taps[-1].body
                if isinstance(update, Update) and update.buffer == first.buffer == body.buffer:
                    return Reduction(body.buffer, first, taps, update, rest)
        return None
