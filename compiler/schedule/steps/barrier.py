"""A place where the threads of a block wait for each other."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ...errors import ScheduleError
from ...loops.intrinsic import BARRIER, Intrinsic
from ...loops.ir import Function, Invoke, LoopKind, block
from .site import find_loop

__all__ = ["Barrier"]


@frozen
class Barrier:
    """Make the threads of a block wait for each other before a nest of theirs, or after it.

        for t thread: A;  for u thread: B
        ->   for t thread: A;  invoke barrier();  for u thread: B

    It does not change results of loops that run one after the other, so it is always legal outside
    of threads; ``loops/barriers.py`` says where it is needed.
    """

    loop: str
    after: bool = False

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        site, loop = find_loop(function, self.loop)
        around = [getattr(outer, "kind", None) for outer, _ in site.above]
        if loop.kind is not LoopKind.THREAD or LoopKind.THREAD in around:
            raise ScheduleError(
                f"barrier at {self.loop}: required the outermost of a block's thread loops"
            )
        wait = Invoke(BARRIER, ())
        return site.replaced(block(loop, wait) if self.after else block(wait, loop))
