"""A guard that is the same for all iterations of a loop, tested before it."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ...errors import ScheduleError
from ...loops.expressions import Expr
from ...loops.intrinsic import Intrinsic
from ...loops.ir import For, Function, If, Stmt
from ...loops.traverse import loads, variables
from .site import find_loop

__all__ = ["HoistGuard"]


@frozen
class HoistGuard:
    """Test outside of a loop what does not depend on it.

        for i: if c: S   ->   if c: for i: S

    Nested guards are tested in any order; those that depend on the loop, or read memory, stay.
    """

    loop: str

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        site, loop = find_loop(function, self.loop)
        outside: list[Expr] = []
        inside: list[Expr] = []
        body = loop.body
        while isinstance(body, If) and body.otherwise is None:
            own = self.loop in variables(body.condition) or any(loads(body.condition))
            (inside if own else outside).append(body.condition)
            body = body.then
        if not outside or any(loads(condition) for condition in inside):
            raise ScheduleError(
                f"hoist of guards in {self.loop}: found none that may stand outside"
            )
        for condition in reversed(inside):
            body = If(condition, body)
        whole: Stmt = For(loop.variable, loop.extent, loop.kind, body, loop.annotations)
        for condition in reversed(outside):
            whole = If(condition, whole)
        return site.replaced(whole)
