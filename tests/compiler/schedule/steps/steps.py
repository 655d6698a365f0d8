"""Random steps for a schedule, of which some apply."""

from itertools import pairwise

from hypothesis import strategies as st

from dovetail.compiler.errors import ScheduleError
from dovetail.compiler.loops.expressions import Scope
from dovetail.compiler.loops.ir import Allocate, Block, For, Function, LoopKind, Stmt
from dovetail.compiler.loops.traverse import bodies, loads, written
from dovetail.compiler.schedule.steps.compute_at import ComputeAt
from dovetail.compiler.schedule.steps.inline import Inline
from dovetail.compiler.schedule.steps.loop_steps import Annotate, Fuse, Partition, SetKind, Split
from dovetail.compiler.schedule.steps.order_steps import Fission, Join, Reorder
from dovetail.compiler.schedule.steps.pipeline import Pipeline
from dovetail.compiler.schedule.steps.rfactor import Rfactor
from dovetail.compiler.schedule.steps.schedule import Schedule, Step
from dovetail.compiler.schedule.steps.site import loop_names
from dovetail.compiler.schedule.steps.storage_steps import (
    CacheRead,
    CacheWrite,
    Lift,
    SetLayout,
    SetScope,
)

__all__ = ["schedules", "steps"]

CPU_KINDS = (LoopKind.PARALLEL, LoopKind.VECTOR, LoopKind.UNROLLED, LoopKind.SERIAL)
KINDS = (*CPU_KINDS, LoopKind.BLOCK, LoopKind.THREAD, LoopKind.VIRTUAL)
CPU_SCOPES = (Scope.LOCAL, Scope.REGISTER)
SCOPES = (*CPU_SCOPES, Scope.SHARED)


@st.composite
def steps(draw: st.DrawFn, function: Function, cpu: bool = False) -> Step | None:
    """A step whose names are of the function; whether it applies is open.

    With ``cpu`` only kinds of loops and scopes that a CPU has.
    """
    kinds = st.sampled_from(CPU_KINDS if cpu else KINDS)
    scopes = st.sampled_from(CPU_SCOPES if cpu else SCOPES)
    places = _Places(function)
    options: list[st.SearchStrategy[Step]] = []
    if places.loops:
        loop = st.sampled_from(places.loops)
        small = st.integers(1, 4)
        buffer = st.sampled_from(places.buffers)
        root = loop | st.just("")
        options += [
            st.builds(Split, loop, small, st.sampled_from(["guard", "short", "exact"])),
            st.builds(Split, loop, st.just(2)),
            st.builds(SetKind, loop, kinds),
            st.builds(Partition, loop, small),
            st.builds(Annotate, loop, st.sampled_from(["a", "b"]), small | st.just("c")),
            st.builds(CacheRead, buffer, root, scopes),
            st.builds(CacheWrite, buffer, root, scopes),
            st.builds(Rfactor, loop, loop),
        ]
    if places.nested:
        pair = st.sampled_from(places.nested)
        band = st.sampled_from(places.nests).flatmap(st.permutations)
        options += [
            pair.map(lambda names: Fuse(*names)),
            pair.map(lambda names: Rfactor(names[1], names[0])),
            band.map(lambda names: Reorder(tuple(names))),
            band.map(lambda names: Reorder(tuple(names[:2]))),
        ]
    if places.siblings:
        options.append(st.sampled_from(places.siblings).map(lambda names: Join(*names)))
    if places.blocks:
        options.append(st.builds(Fission, st.sampled_from(places.blocks), st.integers(1, 2)))
    if places.allocated:
        name = st.sampled_from(places.allocated)
        tiles = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), max_size=2).map(tuple)
        options += [
            st.builds(Inline, name),
            st.builds(SetScope, name, scopes),
            st.builds(SetLayout, name, tiles),
        ]
        if places.loops:
            options.append(st.builds(ComputeAt, name, loop))
    if places.readers:
        reader = st.sampled_from(places.readers)
        options += [reader.map(lambda names: ComputeAt(*names))] * 2
    if places.inner_allocations:
        pair = st.sampled_from(places.inner_allocations)
        options += [
            st.tuples(pair, st.integers(0, 1), st.booleans()).map(
                lambda drawn: Lift(*drawn[0], drawn[1], drawn[2])
            ),
            pair.map(lambda names: Pipeline(names[1], names[0])),
        ]
    return draw(st.one_of(options)) if options else None


class _Places:
    """Names of a function that a step may well apply to."""

    def __init__(self, function: Function) -> None:
        self.loops = loop_names(function.body)
        self.allocated: list[str] = []
        self.nested: list[tuple[str, str]] = []
        self.nests: list[list[str]] = []
        self.siblings: list[tuple[str, str]] = []
        self.blocks: list[str] = []
        self.inner_allocations: list[tuple[str, str]] = []
        self.readers: list[tuple[str, str]] = []
        """Allocated buffers, and loops that read but do not write them."""
        self._visit(function.body, ())
        parameters = (*function.inputs, *function.outputs)
        self.buffers = [*(buffer.name for buffer in parameters), *self.allocated]

    def _visit(self, stmt: Stmt, around: tuple[str, ...]) -> None:
        match stmt:
            case For(variable=name, body=body):
                read = {load.buffer.name for load in loads(body)} - written(body)
                self.readers += [(each, name) for each in self.allocated if each in read]
                if around:
                    self.nested.append((around[-1], name))
                    self.nests.append([*around, name])
                around = (*around, name)
                if isinstance(body, Block):
                    self.blocks.append(name)
            case Allocate(buffer=buffer):
                self.allocated.append(buffer.name)
                if around:
                    self.inner_allocations.append((buffer.name, around[-1]))
            case Block(statements=statements):
                for first, second in pairwise(statements):
                    if isinstance(first, For) and isinstance(second, For):
                        self.siblings.append((first.variable, second.variable))
        for body in bodies(stmt):
            self._visit(body, around)


@st.composite
def schedules(
    draw: st.DrawFn, function: Function, max_steps: int = 8, cpu: bool = False
) -> Schedule:
    """A schedule of the function, of steps that apply."""
    schedule = Schedule.of(function)
    for _ in range(draw(st.integers(1, max_steps))):
        step = draw(steps(schedule.function, cpu))
        if step is None:
            break
        try:
            schedule = schedule.then(step)
        except ScheduleError:
            continue
    return schedule
