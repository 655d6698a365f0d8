"""Steps that change the order in which statements run."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen, replace

from ...errors import ScheduleError
from ...loops.expressions import Load, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Block, For, Function, If, Let, Stmt, block
from ...loops.legality import describe, fission_conflict, join_conflict, reorder_conflict
from ...loops.rewrite import substitute
from ...loops.traverse import expressions, variables
from .site import check_extents, find, find_loop, loop_names, named_loop

__all__ = ["Fission", "Join", "Reorder"]

Intrinsics = Mapping[str, Intrinsic]


@frozen
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
        check_extents(band, body, what)
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


@frozen
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
        check_extents((loop,), first, what)
        conflict = fission_conflict(loop, first, second, site.bounds, intrinsics)
        if conflict is not None:
            raise ScheduleError(f"{what}: the order of accesses to {describe(conflict)} changes")
        name = named_loop(self.name, f"{self.loop}.2", loop_names(function.body))
        moved = substitute(second, {self.loop: Variable(name)})
        return site.replaced(
            block(replace(loop, body=first), replace(loop, variable=name, body=moved))
        )


@frozen
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
        check_extents((second,), first.body, what)
        body = substitute(second.body, {self.second: Variable(self.first)})
        joined = replace(first, body=block(first.body, body))
        conflict = join_conflict(joined, first.body, body, site.bounds, intrinsics)
        if conflict is not None:
            raise ScheduleError(f"{what}: the order of accesses to {describe(conflict)} changes")
        rest = parent.statements[number + 2 :]
        return site.up(1).replaced(block(*parent.statements[:number], joined, *rest))
