"""Steps that change loops: their number, order and kind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.expressions import Binary, BinaryFunction, Constant, Expr, Load, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Block, For, Function, If, Let, LoopKind, Stmt, block
from ...loops.legality import (
    describe,
    fission_conflict,
    join_conflict,
    race,
    reorder_conflict,
)
from ...loops.rewrite import expressions, loads, substitute, variables, written
from ...loops.simplify import Simplifier
from .site import find, find_loop, fresh, loop_names, rename_loops

__all__ = ["Annotate", "Fission", "Fuse", "Join", "Partition", "Reorder", "SetKind", "Split"]

Intrinsics = Mapping[str, Intrinsic]

COUNTED = frozenset({LoopKind.VECTOR, LoopKind.UNROLLED, LoopKind.HARDWARE})
"""Kinds of constant extent."""


@dataclass(frozen=True, slots=True)
class Split:
    """Cut a loop into ``factor`` iterations at a time.

        for i in N: S   ->   for i.o in ceil(N / factor):
                               for i.i in factor:
                                 if i.o * factor + i.i < N: S[i = i.o * factor + i.i]

    ``tail`` says what happens where ``factor`` does not divide N: ``guard``, as above; ``short``:
    ``for i.i in min(factor, N - i.o * factor)``; ``exact``: it is refused.  A guard that always
    holds is left out.  The two loops are named ``outer`` and ``inner``, if given.
    """

    loop: str
    factor: int
    tail: str = "guard"
    outer: str = ""
    inner: str = ""

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        site, loop = find_loop(function, self.loop)
        if self.factor < 1:
            raise ScheduleError(f"split of {self.loop} by {self.factor}: required at least 1")
        if self.tail not in ("guard", "short", "exact"):
            raise ScheduleError(
                f"split of {self.loop}: tail {self.tail!r}; required guard, short or exact"
            )
        _check_extents((loop,), loop.body, f"split of {self.loop}")
        names = loop_names(function.body)
        names.remove(self.loop)
        outer = _named(self.outer, f"{self.loop}.o", names)
        inner = _named(self.inner, f"{self.loop}.i", [*names, outer])
        simplifier = Simplifier(site.bounds)
        extent = simplifier.linear(loop.extent)
        count = simplifier.floordiv(extent.shifted(self.factor - 1), self.factor)
        rest = simplifier.mod(extent, self.factor).value
        if self.tail == "exact" and rest != 0:
            raise ScheduleError(
                f"split of {self.loop}: {self.factor} does not divide its extent "
                f"{extent.value if extent.value is not None else 'for all values'}; "
                "take a divisor, or a tail of guard or short"
            )
        index = Variable(outer) * self.factor + Variable(inner)
        body = substitute(loop.body, {self.loop: index})
        size: Expr = Constant(self.factor, DType.INT64)
        if self.tail == "guard" and rest != 0:
            body = If(index < loop.extent, body)
        elif self.tail == "short" and rest != 0:
            if loop.kind in COUNTED:
                raise ScheduleError(
                    f"split of {self.loop}: it is {loop.kind}, so that no tail may be short; "
                    "take a tail of guard"
                )
            size = Binary(BinaryFunction.MIN, size, loop.extent - Variable(outer) * self.factor)
        nest = For(inner, size, loop.kind, body)
        return site.simplified(For(outer, count.to_expr(), loop.kind, nest))


@dataclass(frozen=True, slots=True)
class Fuse:
    """Make one loop of two, the second directly in the first.

        for i in N: for j in M: S   ->   for i.j in N * M: S[i = i.j // M, j = i.j % M]

    M does not depend on i, and both are of one kind.  The loop is named ``name``, if given.
    """

    outer: str
    inner: str
    name: str = ""

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        site, outer = find_loop(function, self.outer)
        inner = outer.body
        what = f"fuse of {self.outer} and {self.inner}"
        if not isinstance(inner, For) or inner.variable != self.inner:
            find_loop(function, self.inner)
            raise ScheduleError(f"{what}: the second is not directly and alone in the first")
        if outer.variable in variables(inner.extent):
            raise ScheduleError(f"{what}: the extent of the second depends on the first")
        if inner.kind is not outer.kind:
            raise ScheduleError(
                f"{what}: the first is {outer.kind}, the second {inner.kind}; required one kind"
            )
        _check_extents((outer, inner), inner.body, what)
        names = set(loop_names(function.body)) - {self.outer, self.inner}
        name = _named(self.name, f"{self.outer}.{self.inner}", names)
        values = {
            self.outer: Variable(name) // inner.extent,
            self.inner: Binary(BinaryFunction.MOD, Variable(name), inner.extent),
        }
        body = substitute(inner.body, values)
        return site.simplified(For(name, outer.extent * inner.extent, outer.kind, body))


@dataclass(frozen=True, slots=True)
class Reorder:
    """Put loops of one nest in this order, outermost first.

        for i: for j: S   ->   for j: for i: S

    Loops between them that are not named keep their places, and so do the places as a whole.
    Guards and lets between them move inside, to where all their variables are known.  No extent may
    depend on a loop that moves into its loop, and no two accesses to one element may change their
    order, but updates by one function.
    """

    loops: tuple[str, ...]

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"reorder of {', '.join(self.loops)}"
        if len(set(self.loops)) != len(self.loops) or not self.loops:
            raise ScheduleError(f"{what}: required different loops")
        for name in self.loops:
            find_loop(function, name)
        site = find(function, lambda stmt: isinstance(stmt, For) and stmt.variable in self.loops)
        assert site is not None
        band, wrappers, body = _nest(site.stmt, set(self.loops), what)
        old = [loop.variable for loop in band]
        wanted = iter(self.loops)
        new = [next(wanted) if name in self.loops else name for name in old]
        by_name = {loop.variable: loop for loop in band}
        for position, name in enumerate(new):
            late = variables(by_name[name].extent) & set(new[position:])
            if late:
                raise ScheduleError(f"{what}: the extent of {name} depends on {min(late)}")
        _check_extents(band, body, what)
        conflict = reorder_conflict(band, new, site.bounds, intrinsics)
        if conflict is not None:
            raise ScheduleError(f"{what}: the order of accesses to {describe(conflict)} changes")
        ordered = [by_name[name] for name in new]
        return site.simplified(_wrapped(ordered, wrappers, body))


def _nest(stmt: Stmt, names: set[str], what: str) -> tuple[list[For], list[If | Let], Stmt]:
    """The loops from ``stmt`` to the innermost of ``names``, what else is between, and the body."""
    band: list[For] = []
    wrappers: list[If | Let] = []
    missing = set(names)
    while missing:
        match stmt:
            case For(variable=name, body=body):
                band.append(stmt)
                missing.discard(name)
                stmt = body
                continue
            case If(condition=test, then=then, otherwise=None):
                wrappers.append(stmt)
                part, stmt = test, then
            case Let(value=value, body=body):
                wrappers.append(stmt)
                part, stmt = value, body
            case _:
                raise ScheduleError(
                    f"{what}: {min(missing)} is not alone in {band[-1].variable}; separate what "
                    "is beside it by fission"
                )
        if any(isinstance(node, Load) for node in expressions(part)):
            raise ScheduleError(f"{what}: a condition or let between them reads memory")
    return band, wrappers, stmt


def _wrapped(ordered: list[For], wrappers: list[If | Let], body: Stmt) -> Stmt:
    """The loops around the body, each wrapper directly inside the last loop that it mentions."""
    names = [loop.variable for loop in ordered]
    places: list[list[If | Let]] = [[] for _ in names]
    lowest = 0
    for wrapper in wrappers:
        part = wrapper.condition if isinstance(wrapper, If) else wrapper.value
        used = [names.index(name) for name in variables(part) if name in names]
        # Wrappers keep their order: a let stays before what mentions it.
        lowest = max([lowest, *used])
        places[lowest].append(wrapper)
    for loop, inside in zip(reversed(ordered), reversed(places), strict=True):
        for wrapper in reversed(inside):
            body = (
                replace(wrapper, then=body)
                if isinstance(wrapper, If)
                else replace(wrapper, body=body)
            )
        body = replace(loop, body=body)
    return body


@dataclass(frozen=True, slots=True)
class SetKind:
    """Give a loop a kind: vectorize, parallel, unroll, bind to blocks or threads, virtual.

        for i in N: S   ->   for i in N vector: S

    A vector or unrolled loop has a constant extent.  Iterations of a parallel, block or thread loop
    touch no element that another writes; those of a vector or virtual loop may update one.
    """

    loop: str
    kind: LoopKind

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        site, loop = find_loop(function, self.loop)
        new = replace(loop, kind=self.kind)
        if self.kind in COUNTED and not isinstance(loop.extent, Constant):
            raise ScheduleError(
                f"{self.kind} loop {self.loop}: its extent is not constant; split it with a guard"
            )
        conflict = race(new, site.bounds, intrinsics)
        if conflict is not None:
            raise ScheduleError(
                f"{self.kind} loop {self.loop}: iterations touch the same element of "
                f"{describe(conflict)}"
            )
        return site.replaced(new)


@dataclass(frozen=True, slots=True)
class Annotate:
    """Tell the backend something about a loop, in the place of what was said under this name.

    for i in N: S   ->   for i in N {name: value}: S
    """

    loop: str
    name: str
    value: int | str

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when there is no such loop."""
        site, loop = find_loop(function, self.loop)
        others = tuple(each for each in loop.annotations if each[0] != self.name)
        return site.replaced(replace(loop, annotations=(*others, (self.name, self.value))))


@dataclass(frozen=True, slots=True)
class Partition:
    """Cut a loop in two, one after the other.

        for i in N: S   ->   for i in at: S;  for i.tail in N - at: S[i = i.tail + at]

    The extent is constant and greater than ``at``.  Loops inside the second get ``.tail`` too.
    Guards that always hold in one of the two vanish there.
    """

    loop: str
    at: int

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        site, loop = find_loop(function, self.loop)
        extent = Simplifier(site.bounds).linear(loop.extent).value
        if extent is None or not 0 < self.at < extent:
            raise ScheduleError(
                f"partition of {self.loop} at {self.at}: required 1 to one less than its extent, "
                f"{'which is not constant' if extent is None else extent}"
            )
        first = replace(loop, extent=Constant(self.at, DType.INT64))
        moved = substitute(loop.body, {self.loop: Variable(self.loop) + self.at})
        second = For(self.loop, Constant(extent - self.at, DType.INT64), loop.kind, moved)
        tail = rename_loops(second, loop_names(function.body), ".tail")
        return site.simplified(block(first, tail))


@dataclass(frozen=True, slots=True)
class Fission:
    """Make two loops of one, after statement number ``after`` of its body.

        for i: A; B   ->   for i: A;  for i.2: B

    Nothing of B may touch what A touches in a later iteration, unless both only read or update it.
    The second loop is named ``name``, if given.
    """

    loop: str
    after: int = 1
    name: str = ""

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        site, loop = find_loop(function, self.loop)
        body = loop.body
        what = f"fission of {self.loop} after statement {self.after}"
        if not isinstance(body, Block) or not 0 < self.after < len(body.statements):
            count = len(body.statements) if isinstance(body, Block) else 1
            raise ScheduleError(
                f"{what}: its body has {count} statements; lift allocations out of it first"
            )
        first = block(*body.statements[: self.after])
        second = block(*body.statements[self.after :])
        _check_extents((loop,), first, what)
        conflict = fission_conflict(loop, first, second, site.bounds, intrinsics)
        if conflict is not None:
            raise ScheduleError(f"{what}: the order of accesses to {describe(conflict)} changes")
        name = _named(self.name, f"{self.loop}.2", loop_names(function.body))
        moved = substitute(second, {self.loop: Variable(name)})
        return site.replaced(
            block(replace(loop, body=first), replace(loop, variable=name, body=moved))
        )


@dataclass(frozen=True, slots=True)
class Join:
    """Make one loop of two that follow each other.

        for i: A;  for j: B   ->   for i: A; B[j = i]

    Both have one extent and one kind, and nothing of A may touch what B touches in an earlier
    iteration, unless both only read or update it.
    """

    first: str
    second: str

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"join of {self.first} and {self.second}"
        site, first = find_loop(function, self.first)
        _, second = find_loop(function, self.second)
        parent = site.above[-1][0] if site.above else None
        number = site.above[-1][1] if site.above else 0
        if not isinstance(parent, Block) or parent.statements[number + 1 :][:1] != (second,):
            raise ScheduleError(f"{what}: the second does not directly follow the first")
        if first.kind is not second.kind or first.extent != second.extent:
            raise ScheduleError(f"{what}: they differ in extent or kind")
        _check_extents((second,), first.body, what)
        body = substitute(second.body, {self.second: Variable(self.first)})
        joined = replace(first, body=block(first.body, body))
        conflict = join_conflict(joined, first.body, body, site.bounds, intrinsics)
        if conflict is not None:
            raise ScheduleError(f"{what}: the order of accesses to {describe(conflict)} changes")
        rest = parent.statements[number + 2 :]
        return site.up(1).replaced(block(*parent.statements[:number], joined, *rest))


def _check_extents(loops: Sequence[For], body: Stmt, what: str) -> None:
    """Raise ScheduleError when ``body`` writes what an extent reads, so that its value changes."""
    for loop in loops:
        read = {load.buffer.name for load in loads(loop.extent)}
        changed = read & written(body) if read else read
        if changed:
            raise ScheduleError(
                f"{what}: the extent of {loop.variable} reads {min(changed)}, which is written; "
                "let a variable stand for it outside"
            )


def _named(given: str, default: str, taken: list[str] | set[str]) -> str:
    """The name of a new loop.  Raises ScheduleError when the given one is taken."""
    if given in taken:
        raise ScheduleError(f"there is a loop {given!r} already")
    return given or fresh(default, taken)
