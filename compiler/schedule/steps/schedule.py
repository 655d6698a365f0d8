"""A loop program and the trace of steps that made it what it is."""

from collections.abc import Callable, Mapping
from dataclasses import Field, field
from typing import Any, ClassVar, Concatenate, ParamSpec, Protocol

from dovetail.isa.frozen import frozen, replace

from ...errors import ScheduleError
from ...loops.bounds import Bounds
from ...loops.intrinsic import Intrinsic
from ...loops.ir import For, Function, LoopKind
from ...loops.legality import FREE, describe, race
from ...loops.traverse import walk
from .attend import Attend
from .barrier import Barrier
from .choose import Choose
from .compute_at import ComputeAt
from .frame import Frame
from .hoist_guard import HoistGuard
from .inline import Inline
from .interleave import Interleave
from .lanes import Lanes
from .loop_steps import Annotate, Fuse, Partition, SetKind, Split
from .order_steps import Fission, Join, Reorder
from .overlap import Overlap
from .pack_stores import PackStores
from .pack_tile import PackTile
from .partial_lanes import PartialLanes
from .pipeline import Pipeline
from .prefetch import Prefetch
from .register_tile import RegisterTile
from .rfactor import Rfactor
from .separate import Separate
from .site import find_loop, rename_loops
from .split_sum import SplitSum
from .stage import Stage
from .start_from import StartFrom
from .storage_steps import CacheRead, CacheWrite, Lift, SetLayout, SetScope
from .strips import Cut, Strips
from .tensorize import Tensorize
from .tile import Tile
from .widen import Widen
from .windows import Clip, Drop

__all__ = ["STEPS", "Schedule", "Step"]

P = ParamSpec("P")


class Step(Protocol):
    """A frozen dataclass whose fields are the step's arguments, as a trace has them."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def apply(self, function: Function, intrinsics: Mapping[str, Intrinsic]) -> Function:
        """The function after it.  Raises ScheduleError when it does not apply."""


STEPS: dict[str, type[Any]] = {
    "split": Split,
    "fuse": Fuse,
    "reorder": Reorder,
    "set_kind": SetKind,
    "annotate": Annotate,
    "partition": Partition,
    "fission": Fission,
    "join": Join,
    "cache_read": CacheRead,
    "cache_write": CacheWrite,
    "lift": Lift,
    "set_scope": SetScope,
    "set_layout": SetLayout,
    "inline": Inline,
    "compute_at": ComputeAt,
    "rfactor": Rfactor,
    "register_tile": RegisterTile,
    "pipeline": Pipeline,
    "start_from": StartFrom,
    "prefetch": Prefetch,
    "pack_stores": PackStores,
    "tensorize": Tensorize,
    "lanes": Lanes,
    "partial_lanes": PartialLanes,
    "tile": Tile,
    "interleave": Interleave,
    "clip": Clip,
    "drop": Drop,
    "separate": Separate,
    "frame": Frame,
    "strips": Strips,
    "cut": Cut,
    "pack_tile": PackTile,
    "barrier": Barrier,
    "widen": Widen,
    "stage": Stage,
    "overlap": Overlap,
    "choose": Choose,
    "split_sum": SplitSum,
    "hoist_guard": HoistGuard,
    "attend": Attend,
}
"""Every step, by the name that a trace has for it."""


CHECKED = (SetKind, RegisterTile, Tensorize, StartFrom, Prefetch, PackStores)
"""Steps that look for races themselves, or leave every access where it is."""


def _step(kind: Callable[P, Step]) -> Callable[Concatenate["Schedule", P], "Schedule"]:
    """The method that adds a step of this class; its arguments are those of the class."""

    def method(self: "Schedule", /, *args: P.args, **kwargs: P.kwargs) -> "Schedule":
        return self.then(kind(*args, **kwargs))

    method.__doc__ = kind.__doc__
    return method


@frozen
class Schedule:
    """A function, the steps that made it, and the intrinsics that steps may name.

    Loops are known by their variables, which differ in the whole function: ``of`` sees to it.
    Every method returns another schedule; each raises ScheduleError, with the reason, when the step
    does not apply.  The steps' classes say what they do.
    """

    function: Function
    trace: tuple[Step, ...] = ()
    intrinsics: Mapping[str, Intrinsic] = field(default_factory=dict)

    @staticmethod
    def of(function: Function, intrinsics: Mapping[str, Intrinsic] | None = None) -> "Schedule":
        """The function with different names for its loop variables: of those with one name, all but
        the first get ``.2``, ``.3``, ...
        """
        body = rename_loops(function.body, ())
        return Schedule(replace(function, body=body), (), intrinsics or {})

    def then(self, step: Step) -> "Schedule":
        """The schedule with one more step."""
        function = step.apply(self.function, self.intrinsics)
        if not isinstance(step, CHECKED):
            _check_races(self.function, function, self.intrinsics, step)
        return Schedule(function, (*self.trace, step), self.intrinsics)

    def reorder(self, *loops: str) -> "Schedule":
        """See Reorder."""
        return self.then(Reorder(loops))

    def vectorize(self, loop: str) -> "Schedule":
        """See SetKind."""
        return self.then(SetKind(loop, LoopKind.VECTOR))

    def unroll(self, loop: str) -> "Schedule":
        """See SetKind."""
        return self.then(SetKind(loop, LoopKind.UNROLLED))

    def parallel(self, loop: str) -> "Schedule":
        """See SetKind."""
        return self.then(SetKind(loop, LoopKind.PARALLEL))

    def register_tile(self, tile: RegisterTile) -> "Schedule":
        """With a tile, which has a field for each choice."""
        return self.then(tile)

    split = _step(Split)
    fuse = _step(Fuse)
    bind = _step(SetKind)
    annotate = _step(Annotate)
    partition = _step(Partition)
    fission = _step(Fission)
    join = _step(Join)
    cache_read = _step(CacheRead)
    cache_write = _step(CacheWrite)
    lift = _step(Lift)
    set_scope = _step(SetScope)
    set_layout = _step(SetLayout)
    inline = _step(Inline)
    compute_at = _step(ComputeAt)
    rfactor = _step(Rfactor)
    pipeline = _step(Pipeline)
    start_from = _step(StartFrom)
    prefetch = _step(Prefetch)
    pack_stores = _step(PackStores)
    tensorize = _step(Tensorize)
    lanes = _step(Lanes)
    partial_lanes = _step(PartialLanes)
    tile = _step(Tile)
    interleave = _step(Interleave)
    clip = _step(Clip)
    drop = _step(Drop)
    separate = _step(Separate)
    frame = _step(Frame)
    strips = _step(Strips)
    cut = _step(Cut)
    barrier = _step(Barrier)
    widen = _step(Widen)
    stage = _step(Stage)
    overlap = _step(Overlap)
    choose = _step(Choose)
    hoist_guard = _step(HoistGuard)
    split_sum = _step(SplitSum)
    attend = _step(Attend)
    pack_tile = _step(PackTile)


def _check_races(
    before: Function, function: Function, intrinsics: Mapping[str, Intrinsic], step: Step
) -> None:
    """Loops whose iterations run at once must still be allowed to, where the step changed them."""
    found = [each for each in walk(function.body) if isinstance(each, For) and each.kind in FREE]
    known = {id(each) for each in walk(before.body)} if found else set()
    for stmt in found:
        if id(stmt) not in known:
            site, loop = find_loop(function, stmt.variable)
            bounds: Bounds = site.bounds
            conflict = race(loop, bounds, intrinsics)
            if conflict is not None:
                raise ScheduleError(
                    f"{type(step).__name__.lower()}: iterations of the {loop.kind} loop "
                    f"{loop.variable} would touch the same element of {describe(conflict)}"
                )
