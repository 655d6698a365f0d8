"""Where things are in a program, and the program with something else there."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dovetail.isa.frozen import frozen, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.bounds import Bounds
from ...loops.canonicalize import canonicalize_statement
from ...loops.expressions import Expr, Variable
from ...loops.ir import Allocate, For, Function, If, Let, Stmt
from ...loops.rewrite import map_expr, rebuilt, with_bodies
from ...loops.simplify import Simplifier
from ...loops.traverse import bodies, loads, own_expressions, walk, written

__all__ = [
    "Site",
    "buffer_names",
    "check_extents",
    "find",
    "find_allocation",
    "find_loop",
    "fresh",
    "loop_names",
    "named_loop",
    "rename_loops",
]


@frozen
class Site:
    """A statement of a function and the statements around it, outermost first, each with the
    number of the one of its bodies that leads on.
    """

    function: Function
    stmt: Stmt
    above: tuple[tuple[Stmt, int], ...]

    @property
    def bounds(self) -> Bounds:
        """Facts that hold at the statement."""
        simplifier = Simplifier(Bounds())
        for outer, number in self.above:
            bounds = simplifier.bounds
            match outer:
                case For(variable=name, extent=extent):
                    bounds = bounds.loop(name, simplifier.expr(extent)).surviving(outer)
                case If(condition=condition):
                    test = simplifier.expr(condition)
                    bounds = bounds.where(test, number == 0).surviving(outer)
                case Let(variable=variable, value=value) if not variable.dtype.is_float:
                    bounds = bounds.variable(variable.name, bounds.of(simplifier.expr(value)))
                case _:
                    continue
            simplifier = Simplifier(bounds)
        return simplifier.bounds

    def replaced(self, new: Stmt) -> Function:
        """The function with ``new`` in the statement's place."""
        for outer, number in reversed(self.above):
            parts = list(bodies(outer))
            parts[number] = new
            new = with_bodies(outer, tuple(parts))
        return replace(self.function, body=new)

    def simplified(self, new: Stmt) -> Function:
        """The function with ``new``, simplified, in the statement's place."""
        return self.replaced(canonicalize_statement(new, self.bounds))

    @property
    def body(self) -> "Site":
        """The site of the only statement directly below."""
        (below,) = bodies(self.stmt)
        return Site(self.function, below, (*self.above, (self.stmt, 0)))

    def down(self, buffer: str) -> "Site":
        """The site inside guards, lets and allocations here that do not read ``buffer``."""
        site = self
        while isinstance(site.stmt, Let | Allocate | If):
            if isinstance(site.stmt, If) and site.stmt.otherwise is not None:
                break
            own = own_expressions(site.stmt)
            if any(load.buffer.name == buffer for each in own for load in loads(each)):
                break
            site = site.body
        return site

    def up(self, levels: int) -> "Site":
        """The site of the statement so many levels above."""
        if levels == 0:
            return self
        outer, _ = self.above[-levels]
        return Site(self.function, outer, self.above[:-levels])


def find(function: Function, wanted: Callable[[Stmt], bool]) -> Site | None:
    """The first statement, in the order of the text, that is ``wanted``."""
    # Of each its parent with its number below that one, and the parent's own such three.
    stack: list[tuple[Stmt, Any]] = [(function.body, None)]
    while stack:
        stmt, place = stack.pop()
        while not wanted(stmt):
            below = bodies(stmt)
            for number in range(len(below) - 1, 0, -1):
                stack.append((below[number], (stmt, number, place)))
            if not below:
                break
            stmt, place = below[0], (stmt, 0, place)
        else:
            above = []
            while place is not None:
                parent, number, place = place
                above.append((parent, number))
            return Site(function, stmt, tuple(reversed(above)))
    return None


def find_loop(function: Function, name: str) -> tuple[Site, For]:
    """The loop of variable ``name``.  Raises ScheduleError when there is none."""
    site = find(function, lambda stmt: isinstance(stmt, For) and stmt.variable == name)
    if site is None:
        names = ", ".join(loop_names(function.body)) or "none"
        raise ScheduleError(f"{function.name} has no loop {name!r}; there are: {names}")
    assert isinstance(site.stmt, For)
    return site, site.stmt


def find_allocation(function: Function, name: str) -> tuple[Site, Allocate]:
    """The allocation of buffer ``name``.  Raises ScheduleError when there is none, or several."""
    found = [stmt.buffer.name for stmt in walk(function.body) if isinstance(stmt, Allocate)]
    if found.count(name) != 1:
        number = "no" if name not in found else "more than one"
        raise ScheduleError(
            f"{function.name} has {number} allocation of {name!r}; there are: "
            f"{', '.join(sorted(set(found))) or 'none'}"
        )
    site = find(function, lambda stmt: isinstance(stmt, Allocate) and stmt.buffer.name == name)
    assert site is not None
    assert isinstance(site.stmt, Allocate)
    return site, site.stmt


def loop_names(stmt: Stmt) -> list[str]:
    """The variables of all loops, in the order of the text."""
    return [each.variable for each in walk(stmt) if isinstance(each, For)]


def buffer_names(function: Function) -> set[str]:
    """The names of all buffers, parameters and allocations."""
    names = {each.buffer.name for each in walk(function.body) if isinstance(each, Allocate)}
    return names | {buffer.name for buffer in (*function.inputs, *function.outputs)}


def fresh(name: str, taken: Iterable[str]) -> str:
    """``name``, or ``name.2``, ``name.3``, ... when it is taken."""
    used = set(taken)
    chosen, number = name, 2
    while chosen in used:
        chosen, number = f"{name}.{number}", number + 1
    return chosen


def rename_loops(stmt: Stmt, taken: Iterable[str], suffix: str = "") -> Stmt:
    """``stmt`` with loop variables and lets that are not among ``taken`` and differ from each
    other; ``suffix`` is added to each.
    """
    used = set(taken)
    bound = {each.variable for each in walk(stmt) if isinstance(each, For)}
    bound |= {each.variable.name for each in walk(stmt) if isinstance(each, Let)}
    numbers: dict[str, int] = {}

    def renamed(name: str) -> str:
        new, number = name + suffix, numbers.get(name, 2)
        while new in used or (new in bound and new != name):
            new, number = f"{name}{suffix}.{number}", number + 1
        numbers[name] = number
        used.add(new)
        return new

    def recur(node: Stmt, names: Mapping[str, Expr]) -> Stmt:
        memo: dict[int, tuple[Expr, Expr]] = {}

        def expr(root: Expr) -> Expr:
            return map_expr(root, change, memo) if names else root

        def change(each: Expr) -> Expr:
            return names.get(each.name, each) if isinstance(each, Variable) else each

        def same(below: Stmt) -> Stmt:
            match below:
                case For(variable=name, extent=extent, body=body):
                    new, count = renamed(name), expr(extent)
                    inner = inside(body, name, new)
                    if new == name and count is extent and inner is body:
                        return below
                    return replace(below, variable=new, extent=count, body=inner)
                case Let(variable=variable, value=value, body=body):
                    new, first = renamed(variable.name), expr(value)
                    inner = inside(body, variable.name, new, variable.dtype)
                    if new == variable.name and first is value and inner is body:
                        return below
                    return Let(Variable(new, variable.dtype), first, inner)
                case _:
                    return rebuilt(below, expr, same)

        def inside(body: Stmt, name: str, new: str, dtype: DType = DType.INT64) -> Stmt:
            if new != name:
                return recur(body, {**names, name: Variable(new, dtype)})
            if name in names:
                return recur(body, {key: own for key, own in names.items() if key != name})
            return same(body)

        return same(node)

    return recur(stmt, {})


def check_extents(loops: Sequence[For], body: Stmt, what: str) -> None:
    """Raise ScheduleError when ``body`` writes what an extent reads, so that its value changes."""
    for loop in loops:
        read = {load.buffer.name for load in loads(loop.extent)}
        changed = read & written(body) if read else read
        if changed:
            raise ScheduleError(
                f"{what}: the extent of {loop.variable} reads {min(changed)}, which is written; "
                "let a variable stand for it outside"
            )


def named_loop(given: str, default: str, taken: list[str] | set[str]) -> str:
    """The name of a new loop.  Raises ScheduleError when the given one is taken."""
    if given in taken:
        raise ScheduleError(f"there is a loop {given!r} already")
    return given or fresh(default, taken)
