"""Prefetches of what will soon be read."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen, replace

from ...errors import ScheduleError
from ...loops.expressions import Constant, Expr, Load, Variable, as_index
from ...loops.intrinsic import PREFETCH, Intrinsic
from ...loops.ir import For, Function, Invoke, Region, block
from ...loops.rewrite import substitute_expr
from ...loops.traverse import loads, walk
from .site import find_loop

__all__ = ["Prefetch"]


@frozen
class Prefetch:
    """Ask, in each iteration of a loop, for what it reads of a buffer a round of another loop on.

        for k in K: for i in 2 unrolled: for l in 16 vector: ... w[o * 2 + i, k, l]
        ->   for k in K: invoke prefetch(w[o * 2 + 2, k, 0], w[o * 2 + 3, k, 0]); the same

    moving: i here, a loop inside, all rounds of which are asked for after its last one; or a loop
    around, whose next iteration's elements are asked for.  For all other loops inside, only the
    first iteration's elements are asked for.  Nothing is read or written, so this is always legal.
    """

    loop: str
    buffer: str
    moving: str

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        what = f"prefetch of {self.buffer} in {self.loop}"
        site, loop = find_loop(function, self.loop)
        read = [load for load in loads(loop.body) if load.buffer.name == self.buffer]
        if not read:
            raise ScheduleError(f"{what}: the loop does not read it")
        values: dict[str, Expr] = {}
        count = 0
        for stmt in walk(loop.body):
            if isinstance(stmt, For):
                values[stmt.variable] = as_index(0)
                if stmt.variable == self.moving and isinstance(stmt.extent, Constant):
                    count = int(stmt.extent.value)
        around = {outer.variable for outer, _ in site.above if isinstance(outer, For)}
        if not count and self.moving not in around:
            raise ScheduleError(
                f"{what}: moving loop {self.moving}; required one around it, or one of a constant "
                "extent in it"
            )
        firsts: list[Expr] = [as_index(count + n) for n in range(count)]
        if not count:
            firsts = [Variable(self.moving) + 1]
        regions = tuple(_element(read[0], {**values, self.moving: first}) for first in firsts)
        ahead = Invoke(PREFETCH, regions)
        return site.replaced(replace(loop, body=block(ahead, loop.body)))


def _element(load: Load, values: Mapping[str, Expr]) -> Region:
    place = tuple(substitute_expr(each, values) for each in load.indices)
    return Region(load.buffer, place, (1,) * len(place))
