"""Steps for reductions over windows that are partly outside the tensor."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen, replace

from ...dtypes import DType
from ...errors import ScheduleError
from ...loops.affine import Linear
from ...loops.expressions import Binary, BinaryFunction, Constant, Expr, Variable
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Function
from ...loops.rewrite import substitute
from ...loops.traverse import loads, variables, written
from .guards import at_least_zero, conjuncts, guard, unguarded
from .lanes import constant_extent
from .site import find_loop, loop_names

__all__ = ["Clip", "Drop"]

Intrinsics = Mapping[str, Intrinsic]


@frozen
class Clip:
    """Leave out the iterations at both ends of a loop in which a guard lets it do nothing.

        for k in 3: a[] max= select(0 <= i + k - 1 & i + k - 1 < N, x[i + k - 1], -inf)
        ->  for k in min(i + 2, N) - max(i - 1, 0): a[] max= x[max(i - 1, 0) + k]

    One statement is all there is in the loop and in the loops in it.  Its guard is an ``if``, or a
    selection between what is reduced and what changes no result; the parts of it that mention the
    loop know nothing of what is inside.
    """

    loop: str

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"clip of {self.loop}"
        site, loop = find_loop(function, self.loop)
        extent = constant_extent(loop, what)
        unknown, changed = set(loop_names(loop)), written(loop.body)
        lows, highs, kept = list[Linear](), list[Linear](), list[Expr]()
        for condition in conjuncts(guard(loop.body)):
            if self.loop not in variables(condition):
                kept.append(condition)
                continue
            form = at_least_zero(condition) or Linear(0, {})
            factor = form.coefficient(self.loop)
            rest = form if not factor else form - Linear(0, {Variable(self.loop): factor})
            changes = any(load.buffer.name in changed for load in loads(condition))
            if abs(factor) != 1 or unknown & variables(rest.to_expr()) or changes:
                raise ScheduleError(f"{what}: a guard does not say where the loop begins or ends")
            (lows if factor == 1 else highs).append(rest)
        if len(lows) > 1 or len(highs) > 1 or not (lows or highs):
            raise ScheduleError(
                f"{what}: found {len(lows)} guards of its begin and {len(highs)} of its end; "
                "required one of either, or one of both"
            )
        start = lows[0] if lows else Linear(0, {})
        begin = _least(BinaryFunction.MAX, start, Linear(0, {})) if lows else start.to_expr()
        last = Linear(extent, {}) + start
        end = (
            _least(BinaryFunction.MIN, last, highs[0].shifted(1) + start)
            if highs
            else last.to_expr()
        )
        place = begin - start.to_expr() + Variable(self.loop)
        body = substitute(unguarded(loop.body, kept, what), {self.loop: place})
        return site.simplified(replace(loop, extent=end - begin, body=body))


@frozen
class Drop:
    """Remove a loop of one iteration.

    for i in 1: S   ->   S[i = 0]
    """

    loop: str

    def apply(self, function: Function, intrinsics: Intrinsics) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        site, loop = find_loop(function, self.loop)
        if loop.extent != Constant(1, DType.INT64):
            raise ScheduleError(f"drop of {self.loop}: it has more than one iteration")
        nought = {self.loop: Constant(0, DType.INT64)}
        return site.simplified(substitute(loop.body, nought))


def _least(function: BinaryFunction, a: Linear, b: Linear) -> Expr:
    return Binary(function, a.to_expr(), b.to_expr())
