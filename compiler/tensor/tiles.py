"""The tiles of a kernel: iterations of the serial loops that all of its stages share."""

from ..errors import GraphError
from .ir import Kernel, Loop, LoopKind

__all__ = ["tile_loops"]


def tile_loops(kernel: Kernel) -> tuple[Loop, ...]:
    """The leading loops, from the outermost, that are SERIAL, fold nothing and are in every stage.

    For each iteration of them the stages run one after the other.
    Raises GraphError for a kernel without stages.
    """
    if not kernel.stages:
        raise GraphError(f"kernel {kernel.name!r} has no stages; required at least one")
    shared: list[Loop] = []
    for loops in zip(*(stage.loops for stage in kernel.stages), strict=False):
        first = loops[0]
        folds = any(first.name in stage.reduction for stage in kernel.stages)
        if first.kind is not LoopKind.SERIAL or folds or any(loop != first for loop in loops):
            break
        shared.append(first)
    return tuple(shared)
