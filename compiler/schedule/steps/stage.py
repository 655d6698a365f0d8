"""Copies of what a nest reads again and again, in a buffer ordered as the nest reads it."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ...errors import ScheduleError
from ...loops.expressions import Buffer, Constant, Expr, Load, Scope, Select, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Allocate, For, Function, If, Let, Stmt, Store, While, block, loops
from ...loops.rewrite import map_expr, map_statement, substitute_expr
from ...loops.traverse import expressions, loads, own_expressions, variables, walk, written
from .site import buffer_names, find_loop, fresh, loop_names

__all__ = ["Stage"]


@frozen
class Stage:
    """Read what an iteration of a loop needs of a buffer once, into a buffer by its inner loops.

        for k: for p in 4: for q in 4: ... x[f(k, p)] ...
        ->   for k: alloc t[4 + padding]: for t.0 in 4: t[t.0] = x[f(k, t.0)]
               for p in 4: for q in 4: ... t[p] ...

    ``dimensions`` are the inner loops that the place in the buffer depends on, in the order of the
    new buffer's dimensions.  The last dimension has ``padding`` elements more, which nothing uses.
    A choice between the element and a constant is kept as it is chosen.  Unlike in CacheRead, no
    box of the buffer needs to be found.
    """

    buffer: str
    loop: str
    dimensions: tuple[str, ...]
    scope: Scope
    name: str
    padding: int = 0

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"stage of {self.buffer} in {self.loop}"
        site, loop = find_loop(function, self.loop)
        if not self.dimensions:
            raise ScheduleError(f"{what}: required a dimension")
        if self.buffer in written(loop.body):
            raise ScheduleError(f"{what}: it is written there")
        if self.name in buffer_names(function):
            raise ScheduleError(f"{what}: there is a buffer {self.name!r} already")
        value = self._value(loop.body, what)
        inner = {each.variable: each for each in walk(loop.body) if isinstance(each, For)}
        lets = {each.variable.name for each in walk(loop.body) if isinstance(each, Let)}
        used = variables(value)
        if used & lets or used & set(inner) != set(self.dimensions):
            raise ScheduleError(
                f"{what}: it depends on {', '.join(sorted(used & {*lets, *inner}))}; found the "
                f"dimensions {', '.join(self.dimensions)}"
            )
        if any(each.buffer.name in written(loop.body) for each in loads(value)):
            raise ScheduleError(f"{what}: its place depends on what is written there")
        sizes = []
        for name in self.dimensions:
            extent = inner[name].extent
            if not isinstance(extent, Constant):
                raise ScheduleError(f"{what}: the loop {name} has no constant extent")
            sizes.append(int(extent.value))
        shape = (*sizes[:-1], sizes[-1] + self.padding)
        tile = Buffer(self.name, shape, value.dtype, self.scope)
        taken = loop_names(function.body)
        names = [fresh(f"{self.name}.{axis}", taken) for axis in range(len(sizes))]
        places = {old: Variable(new) for old, new in zip(self.dimensions, names, strict=True)}
        copied = substitute_expr(value, dict(places))
        fill = loops(
            tuple(zip(names, sizes, strict=True)), Store(tile, tuple(places.values()), copied)
        )
        read = Load(tile, tuple(Variable(each) for each in self.dimensions))
        memo: dict[int, tuple[Expr, Expr]] = {}

        def exchange(expr: Expr) -> Expr:
            return map_expr(expr, lambda each: read if each == value else each, memo)

        body: Stmt = map_statement(loop.body, exchange, None)
        whole = Allocate(tile, _after_allocations(body, fill))
        return site.simplified(For(loop.variable, loop.extent, loop.kind, whole, loop.annotations))

    def _value(self, body: Stmt, what: str) -> Expr:
        """The element, and the choice around it."""
        found: list[Expr] = []
        for stmt in walk(body):
            if isinstance(stmt, If | While) and any(
                isinstance(each, Load) and each.buffer.name == self.buffer
                for each in expressions(stmt)
            ):
                raise ScheduleError(f"{what}: it is read under a condition")
            for root in own_expressions(stmt):
                if not any(each.buffer.name == self.buffer for each in loads(root)):
                    continue
                chosen = [each for each in expressions(root) if self._is_choice(each)]
                plain = [
                    each
                    for each in expressions(root)
                    if isinstance(each, Load) and each.buffer.name == self.buffer
                ]
                found += [each for each in (chosen or plain)[:1] if each not in found]
                if len(set(plain)) != 1:
                    raise ScheduleError(f"{what}: it is read in {len(plain)} places")
                self._require_open(root, found[-1], what)
        if len(found) != 1:
            raise ScheduleError(f"{what}: it is read in {len(found)} ways; required 1")
        return found[0]

    def _require_open(self, root: Expr, value: Expr, what: str) -> None:
        """Raise ScheduleError where another choice decides whether the value is read."""
        inside = {id(each) for each in expressions(value)}
        for each in expressions(root):
            if isinstance(each, Select) and id(each) not in inside:
                arms = (each.chosen, each.other)
                if any(load.buffer.name == self.buffer for arm in arms for load in loads(arm)):
                    raise ScheduleError(f"{what}: it is read under a condition")

    def _is_choice(self, expr: Expr) -> bool:
        if not isinstance(expr, Select) or not isinstance(expr.other, Constant):
            return False
        inner = expr.chosen
        while isinstance(inner, Select) and isinstance(inner.other, Constant):
            inner = inner.chosen
        return isinstance(inner, Load) and inner.buffer.name == self.buffer


def _after_allocations(body: Stmt, first: Stmt) -> Stmt:
    """``body`` with one more statement at its begin, inside of what it allocates."""
    if isinstance(body, Allocate):
        return Allocate(body.buffer, _after_allocations(body.body, first))
    return block(first, body)
