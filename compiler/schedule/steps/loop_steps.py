"""Steps that change loops one by one: their number and kind."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.expressions import Binary, BinaryFunction, Constant, Expr, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import For, Function, If, LoopKind, block
from ...loops.legality import FREE, describe, race
from ...loops.rewrite import substitute
from ...loops.simplify import Simplifier
from ...loops.traverse import variables
from .site import check_extents, find_loop, loop_names, named_loop, rename_loops

__all__ = ["Annotate", "Fuse", "Partition", "SetKind", "Split"]

Intrinsics = Mapping[str, Intrinsic]

COUNTED = frozenset({LoopKind.VECTOR, LoopKind.UNROLLED, LoopKind.HARDWARE})
"""Kinds of constant extent."""


@frozen
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
        check_extents((loop,), loop.body, f"split of {self.loop}")
        names = loop_names(function.body)
        names.remove(self.loop)
        outer = named_loop(self.outer, f"{self.loop}.o", names)
        inner = named_loop(self.inner, f"{self.loop}.i", [*names, outer])
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


@frozen
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
        check_extents((outer, inner), inner.body, what)
        names = set(loop_names(function.body)) - {self.outer, self.inner}
        name = named_loop(self.name, f"{self.outer}.{self.inner}", names)
        values = {
            self.outer: Variable(name) // inner.extent,
            self.inner: Binary(BinaryFunction.MOD, Variable(name), inner.extent),
        }
        body = substitute(inner.body, values)
        return site.simplified(For(name, outer.extent * inner.extent, outer.kind, body))


@frozen
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
        conflict = race(new, site.bounds, intrinsics) if self.kind in FREE else None
        if conflict is not None:
            raise ScheduleError(
                f"{self.kind} loop {self.loop}: iterations touch the same element of "
                f"{describe(conflict)}"
            )
        return site.replaced(new)


@frozen
class Annotate:
    """Tell the backend something about a loop, in place of what was said under this name.

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


@frozen
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
