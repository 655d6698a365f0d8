"""Schedule primitives: pure rewrites of kernels, each checked, each a record that can be
replayed.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from ..errors import ScheduleError
from ..tensor.ir import Affine, Kernel, Loop, LoopKind, Ref, Stage, var
from ..tensor.rewrite import map_refs
from ..tensor.tiles import tile_loops

__all__ = [
    "Bind",
    "Cache",
    "Pipeline",
    "Primitive",
    "Reorder",
    "Schedule",
    "ScheduleError",
    "Split",
    "apply",
    "from_record",
]


@dataclass(frozen=True, slots=True)
class Split:
    """``for i in N`` becomes ``for i.outer in N / factor`` around ``for i.inner in factor``, in
    every stage.

    ``factor`` divides N.
    """

    loop: str
    factor: int


@dataclass(frozen=True, slots=True)
class Reorder:
    """Put the loops ``names`` of a stage, which are all of its loops, in this order, outermost
    first.
    """

    stage: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Give loops a kind, in every stage that has them."""

    names: tuple[str, ...]
    kind: LoopKind


@dataclass(frozen=True, slots=True)
class Cache:
    """Let buffer ``buffer`` hold only what one iteration of the serial loops touches.

        for y.outer serial: for y.inner: b[y.outer * 8 + y.inner]   ->   ... b[y.inner]

    The serial loops are those that all stages share (``tensor.tiles``).  For a buffer that every
    iteration writes before it reads it, or that is loaded anew for each.
    """

    buffer: str


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Let ``depth`` tiles be under way at once: what a tile is loaded into, sums up in, or is
    stored from exists that often.

        for t serial: load b; use b   ->   load b[(t + 1) % depth] while b[t % depth] is used

    1 switches it off.
    """

    depth: int


Primitive = Split | Reorder | Bind | Cache | Pipeline
KINDS: dict[str, type[Primitive]] = {
    cls.__name__.lower(): cls for cls in (Split, Reorder, Bind, Cache, Pipeline)
}
FIELDS = {cls: tuple(field.name for field in fields(cls)) for cls in KINDS.values()}
"""The names of each primitive's fields."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel and the trace of primitives that made it; ``record`` is the trace as JSON values."""

    kernel: Kernel
    trace: tuple[Primitive, ...] = ()

    def then(self, primitive: Primitive) -> "Schedule":
        """The schedule with one more primitive.

        Raises ScheduleError when it does not apply, or changes the tiles that a buffer is cached
        for.
        """
        kernel = apply(self.kernel, primitive)
        cached = [each.buffer for each in self.trace if isinstance(each, Cache)]
        if cached and tile_loops(kernel) != tile_loops(self.kernel):
            raise ScheduleError(
                f"{primitive} changes the tiles of kernel {kernel.name}, for one of which "
                f"{cached[0]} is cached; put it before the cache"
            )
        return Schedule(kernel, (*self.trace, primitive))

    @property
    def depth(self) -> int:
        """Tiles under way at once: the last ``Pipeline``'s, or 1."""
        depths = [each.depth for each in self.trace if isinstance(each, Pipeline)]
        return depths[-1] if depths else 1

    @property
    def record(self) -> list[dict[str, object]]:
        """The trace: each primitive's name and fields."""
        return [_to_record(primitive) for primitive in self.trace]


def _to_record(primitive: Primitive) -> dict[str, object]:
    values = asdict(primitive)
    if isinstance(primitive, Bind):
        values["kind"] = primitive.kind.value
    return {"primitive": type(primitive).__name__.lower(), **values}


def from_record(record: Mapping[str, object]) -> Primitive:
    """The primitive of one entry of ``Schedule.record``.

    Raises ScheduleError when it is none.
    """
    values = dict(record)
    kind = str(values.pop("primitive", ""))
    cls = KINDS.get(kind)
    if cls is None:
        raise ScheduleError(f"no schedule primitive in {record}; there are: {', '.join(KINDS)}")
    required = FIELDS[cls]
    if set(values) != set(required):
        raise ScheduleError(
            f"{record}: found the fields {sorted(values)}; {kind} requires {sorted(required)}"
        )
    return cls(**{name: _field(record, name, values[name]) for name in required})


def _field(record: Mapping[str, object], name: str, value: object) -> Any:
    """The value of a primitive's field from JSON."""
    match name, value:
        case "factor" | "depth", int() if not isinstance(value, bool):
            return value
        case "names", list() | tuple() if all(isinstance(each, str) for each in value):
            return tuple(value)
        case "kind", str() if value in {kind.value for kind in LoopKind}:
            return LoopKind(value)
        case "loop" | "stage" | "buffer", str():
            return value
        case _:
            raise ScheduleError(f"{record}: {name} cannot be {value!r}")


def apply(kernel: Kernel, primitive: Primitive) -> Kernel:
    """The kernel after ``primitive``; its meaning is the same.

    Raises ScheduleError when the primitive does not apply.
    """
    match primitive:
        case Split(loop=name, factor=factor):
            if not any(name in stage.extents for stage in kernel.stages):
                raise ScheduleError(f"split: kernel {kernel.name} has no loop {name!r}")
            stages = tuple(_split(stage, name, factor) for stage in kernel.stages)
        case Reorder(stage=stage_name, names=names):
            stages = tuple(
                _reorder(stage, names) if stage.name == stage_name else stage
                for stage in kernel.stages
            )
            if stage_name not in {stage.name for stage in kernel.stages}:
                raise ScheduleError(f"reorder: kernel {kernel.name} has no stage {stage_name!r}")
        case Bind(names=names, kind=kind):
            known = {name for stage in kernel.stages for name in stage.extents}
            missing = set(names) - known
            if missing:
                raise ScheduleError(f"bind: kernel {kernel.name} has no loop {min(missing)!r}")
            stages = tuple(_bind(stage, names, kind) for stage in kernel.stages)
        case Cache(buffer=name):
            return _cache(kernel, name)
        case Pipeline(depth=depth):
            if depth < 1:
                raise ScheduleError(f"pipeline: {depth} tiles of kernel {kernel.name}; required 1")
            return kernel
    return replace(kernel, stages=stages)


def _split(stage: Stage, name: str, factor: int) -> Stage:
    if name not in stage.extents:
        return stage
    extent = stage.extents[name]
    if factor < 1 or extent % factor:
        raise ScheduleError(
            f"split: {factor} does not divide the {extent} iterations of {name!r} in {stage.name}"
        )
    outer, inner = f"{name}.outer", f"{name}.inner"
    taken = {outer, inner} & set(stage.extents)
    if taken:
        raise ScheduleError(f"split: stage {stage.name} already has a loop {min(taken)!r}")
    loops: list[Loop] = []
    for loop in stage.loops:
        if loop.name == name:
            loops += [Loop(outer, extent // factor, loop.kind), Loop(inner, factor, loop.kind)]
        else:
            loops.append(loop)
    reduction = stage.reduction
    if name in reduction:
        reduction = (reduction - {name}) | {outer, inner}
    value = var(outer) * factor + var(inner)
    return map_refs(stage, lambda ref: ref.substitute(name, value), tuple(loops), reduction)


def _reorder(stage: Stage, names: tuple[str, ...]) -> Stage:
    loops = {loop.name: loop for loop in stage.loops}
    if sorted(names) != sorted(loops):
        raise ScheduleError(
            f"reorder: {stage.name} has the loops {list(loops)}; given {list(names)}"
        )
    return replace(stage, loops=tuple(loops[name] for name in names))


def _bind(stage: Stage, names: tuple[str, ...], kind: LoopKind) -> Stage:
    loops = tuple(replace(loop, kind=kind) if loop.name in names else loop for loop in stage.loops)
    return replace(stage, loops=loops)


def _cache(kernel: Kernel, name: str) -> Kernel:
    refs = [ref for stage in kernel.stages for ref in stage.refs if ref.buffer.name == name]
    if not refs:
        raise ScheduleError(f"cache: kernel {kernel.name} has no buffer {name!r}")
    serial = {loop.name for loop in tile_loops(kernel)}
    _check_reloaded(kernel, name)
    for axis in range(len(refs[0].indices)):
        dropped = {_terms(ref.indices[axis], serial) for ref in refs}
        if len(dropped) > 1:
            raise ScheduleError(
                f"cache: {name} is not indexed alike in every stage of {kernel.name}"
            )
    extents = {n: e for stage in kernel.stages for n, e in stage.extents.items()}
    # A dimension that no serial loop moves along stays as it is.
    shape = tuple(
        1 + max(_without(ref, serial)[axis].limits(extents)[1] for ref in refs)
        if any(_terms(ref.indices[axis], serial) for ref in refs)
        else size
        for axis, size in enumerate(refs[0].buffer.shape)
    )
    small = replace(refs[0].buffer, shape=shape)

    def cached(ref: Ref) -> Ref:
        return Ref(small, _without(ref, serial)) if ref.buffer.name == name else ref

    return replace(kernel, stages=tuple(map_refs(stage, cached) for stage in kernel.stages))


def _check_reloaded(kernel: Kernel, name: str) -> None:
    """Every tile must load ``name`` anew, or write all that it reads of it, before it reads."""
    written: Ref | None = None
    read = False
    for stage in kernel.stages:
        for ref in stage.refs[1:]:
            if ref.buffer.name != name:
                continue
            read = True
            if written is not None and ref.indices != written.indices:
                raise ScheduleError(
                    f"cache: stage {stage.name} reads {ref}, written as {written}; required the "
                    "same element, so that no tile reads another's"
                )
        if stage.target.buffer.name == name:
            if read:
                raise ScheduleError(
                    f"cache: stage {stage.name} writes {name} after it is read; required a "
                    "buffer that every tile writes first"
                )
            written = stage.target
    if written is not None and not read:
        raise ScheduleError(
            f"cache: {name} is the result of {kernel.name}, which holds all tiles; required a "
            "buffer that the kernel reads"
        )


def _terms(index: Affine, names: set[str]) -> tuple[tuple[str, int], ...]:
    return tuple((name, factor) for name, factor in index.terms if name in names)


def _without(ref: Ref, names: set[str]) -> tuple[Affine, ...]:
    """The indices with the variables ``names`` at 0."""
    return tuple(
        Affine(index.constant, tuple(t for t in index.terms if t[0] not in names))
        for index in ref.indices
    )
