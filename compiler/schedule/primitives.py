"""Schedule primitives: pure rewrites of kernels, each checked, each a record that can be
replayed.
"""

from dataclasses import asdict, dataclass, replace

from ..errors import CompilerError
from ..tensor.ir import (
    Affine,
    Kernel,
    Loop,
    LoopKind,
    Product,
    Ref,
    Scaled,
    Stage,
    Total,
    Value,
    var,
)

__all__ = [
    "Bind",
    "Cache",
    "Primitive",
    "Reorder",
    "Schedule",
    "ScheduleError",
    "Split",
    "apply",
    "from_record",
]


class ScheduleError(CompilerError):
    """A schedule primitive does not apply to the kernel."""


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

    For a buffer that every iteration writes before it reads it, or that is loaded anew for each.
    """

    buffer: str


Primitive = Split | Reorder | Bind | Cache
KINDS = {cls.__name__.lower(): cls for cls in (Split, Reorder, Bind, Cache)}


@dataclass(frozen=True, slots=True)
class Schedule:
    """A kernel and the trace of primitives that made it; ``record`` is the trace as JSON values."""

    kernel: Kernel
    trace: tuple[Primitive, ...] = ()

    def then(self, primitive: Primitive) -> "Schedule":
        """The schedule with one more primitive.

        Raises ScheduleError when it does not apply.
        """
        return Schedule(apply(self.kernel, primitive), (*self.trace, primitive))

    @property
    def record(self) -> list[dict[str, object]]:
        """The trace: each primitive's name and fields."""
        return [_to_record(primitive) for primitive in self.trace]


def _to_record(primitive: Primitive) -> dict[str, object]:
    fields = asdict(primitive)
    if isinstance(primitive, Bind):
        fields["kind"] = primitive.kind.value
    return {"primitive": type(primitive).__name__.lower(), **fields}


def from_record(record: dict[str, object]) -> Primitive:
    """The primitive of one entry of ``Schedule.record``.

    Raises ScheduleError when it is none.
    """
    fields = dict(record)
    cls = KINDS.get(str(fields.pop("primitive", "")))
    if cls is None:
        raise ScheduleError(f"no schedule primitive in {record}; there are: {', '.join(KINDS)}")
    if "names" in fields:
        fields["names"] = tuple(fields["names"])  # type: ignore[arg-type]
    if "kind" in fields:
        fields["kind"] = LoopKind(fields["kind"])
    try:
        primitive: Primitive = cls(**fields)  # type: ignore[arg-type]
    except TypeError as error:
        raise ScheduleError(f"{record}: {error}") from None
    return primitive


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
    loops: list[Loop] = []
    for loop in stage.loops:
        if loop.name == name:
            loops += [Loop(outer, extent // factor, loop.kind), Loop(inner, factor, loop.kind)]
        else:
            loops.append(loop)
    reduction = stage.reduction
    if name in reduction:
        reduction = (reduction - {name}) | {outer, inner}
    return _substituted(stage, name, var(outer) * factor + var(inner), tuple(loops), reduction)


def _substituted(
    stage: Stage, name: str, value: Affine, loops: tuple[Loop, ...], reduction: frozenset[str]
) -> Stage:
    finish = stage.finish
    if finish:
        finish = replace(
            finish,
            bias=finish.bias.substitute(name, value),
            scale=finish.scale.substitute(name, value),
        )
    return replace(
        stage,
        loops=loops,
        reduction=reduction,
        target=stage.target.substitute(name, value),
        value=_substitute(stage.value, name, value),
        finish=finish,
    )


def _substitute(value: Value, name: str, index: Affine) -> Value:
    match value:
        case Ref():
            return value.substitute(name, index)
        case Product(left=left, right=right):
            return Product(left.substitute(name, index), right.substitute(name, index))
        case Scaled(ref=ref):
            return replace(value, ref=ref.substitute(name, index))
        case Total(left=left_term, right=right_term):
            return Total(
                replace(left_term, ref=left_term.ref.substitute(name, index)),
                replace(right_term, ref=right_term.ref.substitute(name, index)),
            )


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
    serial = {
        loop.name for stage in kernel.stages for loop in stage.loops if loop.kind is LoopKind.SERIAL
    }
    extents = {n: e for stage in kernel.stages for n, e in stage.extents.items()}
    refs = [ref for stage in kernel.stages for ref in stage.refs if ref.buffer.name == name]
    if not refs:
        raise ScheduleError(f"cache: kernel {kernel.name} has no buffer {name!r}")
    local = [_without(ref, serial) for ref in refs]
    for axis in range(len(refs[0].indices)):
        dropped = {_terms(ref.indices[axis], serial) for ref in refs}
        if len(dropped) > 1:
            raise ScheduleError(
                f"cache: {name} is not indexed alike in every stage of {kernel.name}"
            )
    shape = tuple(
        1 + max(indices[axis].limits(extents)[1] for indices in local)
        for axis in range(len(refs[0].indices))
    )
    small = replace(refs[0].buffer, shape=shape)

    def cached(ref: Ref) -> Ref:
        return Ref(small, _without(ref, serial)) if ref.buffer.name == name else ref

    stages = []
    for stage in kernel.stages:
        value = stage.value
        if isinstance(value, Product):
            value = Product(cached(value.left), cached(value.right))
        elif isinstance(value, Ref):
            value = cached(value)
        stages.append(replace(stage, target=cached(stage.target), value=value))
    return replace(kernel, stages=tuple(stages))


def _terms(index: Affine, names: set[str]) -> tuple[tuple[str, int], ...]:
    return tuple((name, factor) for name, factor in index.terms if name in names)


def _without(ref: Ref, names: set[str]) -> tuple[Affine, ...]:
    """The indices with the variables ``names`` at 0."""
    return tuple(
        Affine(index.constant, tuple(t for t in index.terms if t[0] not in names))
        for index in ref.indices
    )
