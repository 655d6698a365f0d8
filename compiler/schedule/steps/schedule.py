"""A loop program and the trace of steps that made it what it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ...errors import ScheduleError
from ...loops.bounds import Bounds
from ...loops.expressions import Scope
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

Step = (
    Split
    | Fuse
    | Reorder
    | SetKind
    | Annotate
    | Partition
    | Fission
    | Join
    | CacheRead
    | CacheWrite
    | Lift
    | SetScope
    | SetLayout
    | Inline
    | ComputeAt
    | Rfactor
    | RegisterTile
    | Pipeline
    | StartFrom
    | Prefetch
    | PackStores
    | Tensorize
    | Lanes
    | PartialLanes
    | Tile
    | Interleave
    | Clip
    | Drop
    | Separate
    | Frame
    | Strips
    | Cut
    | PackTile
    | Barrier
    | Widen
    | Stage
    | Overlap
    | Choose
    | SplitSum
    | HoistGuard
    | Attend
)

STEPS: dict[str, type[Step]] = {
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


@dataclass(frozen=True, slots=True)
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

    def split(
        self, loop: str, factor: int, tail: str = "guard", outer: str = "", inner: str = ""
    ) -> "Schedule":
        """See Split."""
        return self.then(Split(loop, factor, tail, outer, inner))

    def fuse(self, outer: str, inner: str, name: str = "") -> "Schedule":
        """See Fuse."""
        return self.then(Fuse(outer, inner, name))

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

    def bind(self, loop: str, kind: LoopKind) -> "Schedule":
        """See SetKind."""
        return self.then(SetKind(loop, kind))

    def annotate(self, loop: str, name: str, value: int | str) -> "Schedule":
        """See Annotate."""
        return self.then(Annotate(loop, name, value))

    def partition(self, loop: str, at: int) -> "Schedule":
        """See Partition."""
        return self.then(Partition(loop, at))

    def fission(self, loop: str, after: int = 1, name: str = "") -> "Schedule":
        """See Fission."""
        return self.then(Fission(loop, after, name))

    def join(self, first: str, second: str) -> "Schedule":
        """See Join."""
        return self.then(Join(first, second))

    def cache_read(self, buffer: str, loop: str, scope: Scope, name: str = "") -> "Schedule":
        """See CacheRead."""
        return self.then(CacheRead(buffer, loop, scope, name))

    def cache_write(self, buffer: str, loop: str, scope: Scope, name: str = "") -> "Schedule":
        """See CacheWrite."""
        return self.then(CacheWrite(buffer, loop, scope, name))

    def lift(self, buffer: str, loop: str, axis: int = 0, expand: bool = True) -> "Schedule":
        """See Lift."""
        return self.then(Lift(buffer, loop, axis, expand))

    def set_scope(self, buffer: str, scope: Scope) -> "Schedule":
        """See SetScope."""
        return self.then(SetScope(buffer, scope))

    def set_layout(
        self,
        buffer: str,
        tiles: tuple[tuple[int, int], ...] = (),
        order: tuple[int, ...] = (),
    ) -> "Schedule":
        """See SetLayout."""
        return self.then(SetLayout(buffer, tiles, order))

    def inline(self, buffer: str) -> "Schedule":
        """See Inline."""
        return self.then(Inline(buffer))

    def compute_at(self, buffer: str, loop: str) -> "Schedule":
        """See ComputeAt."""
        return self.then(ComputeAt(buffer, loop))

    def rfactor(self, loop: str, root: str, name: str = "") -> "Schedule":
        """See Rfactor."""
        return self.then(Rfactor(loop, root, name))

    def pipeline(self, loop: str, buffer: str) -> "Schedule":
        """See Pipeline."""
        return self.then(Pipeline(loop, buffer))

    def register_tile(self, tile: RegisterTile) -> "Schedule":
        """With a tile, which has a field for each choice."""
        return self.then(tile)

    def start_from(self, buffer: str) -> "Schedule":
        """See StartFrom."""
        return self.then(StartFrom(buffer))

    def prefetch(self, loop: str, buffer: str, moving: str) -> "Schedule":
        """See Prefetch."""
        return self.then(Prefetch(loop, buffer, moving))

    def pack_stores(self, loop: str) -> "Schedule":
        """See PackStores."""
        return self.then(PackStores(loop))

    def tensorize(self, loop: str, intrinsic: str) -> "Schedule":
        """See Tensorize."""
        return self.then(Tensorize(loop, intrinsic))

    def lanes(self, loop: str, lanes: int, rest: str = "vector") -> "Schedule":
        """See Lanes."""
        return self.then(Lanes(loop, lanes, rest))

    def partial_lanes(self, buffer: str, loop: str, lanes: int) -> "Schedule":
        """See PartialLanes."""
        return self.then(PartialLanes(buffer, loop, lanes))

    def tile(self, nest: str, rows: str, columns: str, size: int) -> "Schedule":
        """See Tile."""
        return self.then(Tile(nest, rows, columns, size))

    def interleave(self, loop: str, intrinsic: str) -> "Schedule":
        """See Interleave."""
        return self.then(Interleave(loop, intrinsic))

    def clip(self, loop: str) -> "Schedule":
        """See Clip."""
        return self.then(Clip(loop))

    def drop(self, loop: str) -> "Schedule":
        """See Drop."""
        return self.then(Drop(loop))

    def separate(self, loop: str, last: str, tap: str, name: str = "") -> "Schedule":
        """See Separate."""
        return self.then(Separate(loop, last, tap, name))

    def frame(self, loop: str) -> "Schedule":
        """See Frame."""
        return self.then(Frame(loop))

    def strips(self, loops: tuple[str, ...], rows: int, joined: bool = False) -> "Schedule":
        """See Strips."""
        return self.then(Strips(loops, rows, joined))

    def cut(self, nest: str, loop: str, at: int) -> "Schedule":
        """See Cut."""
        return self.then(Cut(nest, loop, at))

    def barrier(self, loop: str, after: bool = False) -> "Schedule":
        """See Barrier."""
        return self.then(Barrier(loop, after))

    def widen(self, loop: str, factor: int) -> "Schedule":
        """See Widen."""
        return self.then(Widen(loop, factor))

    def stage(
        self,
        buffer: str,
        loop: str,
        dimensions: tuple[str, ...],
        scope: Scope,
        name: str,
        padding: int = 0,
    ) -> "Schedule":
        """See Stage."""
        return self.then(Stage(buffer, loop, dimensions, scope, name, padding))

    def overlap(self, loop: str, behind: bool = False, buffers: int = 2) -> "Schedule":
        """See Overlap."""
        return self.then(Overlap(loop, behind, buffers))

    def choose(self, loop: str) -> "Schedule":
        """See Choose."""
        return self.then(Choose(loop))

    def hoist_guard(self, loop: str) -> "Schedule":
        """See HoistGuard."""
        return self.then(HoistGuard(loop))

    def split_sum(self, loop: str, parts: int, name: str = "") -> "Schedule":
        """See SplitSum."""
        return self.then(SplitSum(loop, parts, name))

    def attend(self, tiles: int, warps: int, columns: int) -> "Schedule":
        """See Attend."""
        return self.then(Attend(tiles, warps, columns))

    def pack_tile(self, loop: str) -> "Schedule":
        """See PackTile."""
        return self.then(PackTile(loop))


def _check_races(
    before: Function, function: Function, intrinsics: Mapping[str, Intrinsic], step: Step
) -> None:
    """Loops whose iterations run at once must still be allowed to, where the step changed them."""
    known = {id(stmt) for stmt in walk(before.body) if isinstance(stmt, For)}
    for stmt in walk(function.body):
        if isinstance(stmt, For) and stmt.kind in FREE and id(stmt) not in known:
            site, loop = find_loop(function, stmt.variable)
            bounds: Bounds = site.bounds
            conflict = race(loop, bounds, intrinsics)
            if conflict is not None:
                raise ScheduleError(
                    f"{type(step).__name__.lower()}: iterations of the {loop.kind} loop "
                    f"{loop.variable} would touch the same element of {describe(conflict)}"
                )
