"""Attention by warps that have scores, weights and results in registers."""

from collections.abc import Mapping

from dovetail.isa.frozen import frozen

from ...errors import ScheduleError
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Function, Invoke
from ...loops.traverse import walk
from .attend_nest import Shape, nest_of
from .attend_parts import parts_of
from .site import buffer_names, find_loop

__all__ = ["Attend"]


@frozen
class Attend:
    """The loops of ``define/attention.py``, by warps that have their rows in registers.

        for rows0: ... for columns0: scores; maxima; weights; sums; means ...
        ->   for rows0: ... for columns0:
               copies of keys and values to shared memory, by all threads
               for warp: products of queries and keys, as fragments of 16 x 16 scores
               for warp, group, quad: the maximum of a thread's scores in each row
               for warp: ... of those of the four threads that have parts of the row
               for warp, group, quad: weights, and sums of a thread's; what was before shrinks
               for warp: products of weights, as they are, and values

    A block has ``warps`` of ``tiles`` x 16 rows each, and ``columns`` of scores at a time.  In
    place of rows and columns beyond the last, the last one is read again: such columns have no
    weight, and such rows are not stored.  Weights are powers of two, of scores times log2(e).  They
    are added up before they are rounded, and those of a row's four threads at the end.

    The step does not transform the loops: it writes new ones that compute the same.  It accepts
    the form that ``define/attention.py`` writes, and refuses any other.
    """

    tiles: int
    warps: int
    columns: int

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""
        site, loop = find_loop(function, "rows0")
        shape = Shape(self.tiles, self.warps, self.columns)
        nest = nest_of(parts_of(function, site), shape, loop.kind, buffer_names(function))
        used = {each.intrinsic for each in walk(nest) if isinstance(each, Invoke)}
        missing = used - set(intrinsics)
        if missing:
            raise ScheduleError(f"attend: no such intrinsic: {min(missing)}")
        return site.simplified(nest)
