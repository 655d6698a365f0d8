"""A choice that is the same for all iterations of a loop, made before it."""

from collections.abc import Mapping
from functools import reduce
from math import gcd

from dovetail.isa.frozen import frozen

from ...errors import ScheduleError
from ...loops.affine import Linear
from ...loops.expressions import Constant, Expr, Select, Variable, as_index
from ...loops.intrinsic import Intrinsic
from ...loops.ir import For, Function, If, Store
from ...loops.simplify import Simplifier
from ...loops.traverse import variables
from .guards import at_least_zero, conjuncts
from .site import find_loop, loop_names, rename_loops

__all__ = ["Choose"]


@frozen
class Choose:
    """Decide once what all iterations of a loop store.

        for i: t[i] = select(c, x[i], 0)
        ->   if c: for i: t[i] = x[i]
             else: for i.else: t[i.else] = 0

    The loop has one store; the condition does not depend on the loop.  Nested choices with the same
    alternative count as one.
    """

    loop: str

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"choose before {self.loop}"
        site, loop = find_loop(function, self.loop)
        store = loop.body
        if not isinstance(store, Store) or not isinstance(store.value, Select):
            raise ScheduleError(f"{what}: required one store of a choice")
        condition, value = store.value.condition, store.value.chosen
        while isinstance(value, Select) and value.other == store.value.other:
            condition, value = condition & value.condition, value.chosen
        simplifier = Simplifier(site.bounds.loop(self.loop, loop.extent))
        parts = map(simplifier.expr, conjuncts(condition))
        together = [_at_first(part, self.loop, loop.extent) for part in parts]
        condition = reduce(lambda one, other: one & other, together)
        if self.loop in variables(condition):
            raise ScheduleError(f"{what}: the condition differs from one iteration to the next")
        chosen, other = (
            For(self.loop, loop.extent, loop.kind, Store(store.buffer, store.indices, each))
            for each in (value, store.value.other)
        )
        otherwise = rename_loops(other, loop_names(function.body), ".else")
        return site.simplified(If(condition, chosen, otherwise))


def _at_first(condition: Expr, loop: str, extent: Expr) -> Expr:
    """A condition for the first iteration, where all have the same: ``8 x + i < 8 n``, i in 8."""
    form = at_least_zero(condition)
    if form is None or form.coefficient(loop) != -1 or not isinstance(extent, Constant):
        return condition
    others = {atom: step for atom, step in form.terms.items() if atom != Variable(loop)}
    if gcd(form.constant + 1, *others.values()) % int(extent.value):
        return condition
    return as_index(0) <= Linear(form.constant, others).to_expr()
