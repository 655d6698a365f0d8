"""A graph as launches of kernels: groups of nodes → loop programs → calls → kernels."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import gcd

from dovetail.isa.frozen import frozen
from dovetail.runtime.gpu.part import KernelEntry, Launch, Repeat, Space, Stride
from dovetail.runtime.gpu.part import Place as DevicePlace

from ...define.definition import Definition
from ...define.group import define_group
from ...errors import ScheduleError
from ...graph.ir import Graph, Node
from ...graph.keys import group_key
from ...graph.passes.byte_pairs import BytePairs
from ...graph.passes.byte_products import ByteProducts
from ...graph.passes.channels_last import ChannelsLast
from ...graph.passes.eliminate_dead import EliminateDead
from ...graph.passes.exact_products import ExactProducts
from ...graph.passes.expand_integers.expand import ExpandIntegers
from ...graph.passes.expand_quantization import ExpandQuantization
from ...graph.passes.fold_constants import FoldConstants
from ...graph.passes.fold_scales import FoldScales
from ...graph.passes.fuse_attention import FuseAttention
from ...graph.passes.fuse_norms import FuseNorms
from ...graph.passes.in_bodies import InBodies
from ...graph.passes.merge_common import MergeCommon
from ...graph.passes.narrow_floats import NarrowFloats
from ...graph.passes.split_softmax import SplitSoftmax
from ...graph.passes.split_sums import SplitSums
from ...graph.passes.wide_sums import WideSums
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Function
from ...loops.text import to_text
from ...options import Precision
from ...pipeline.passes import Pass, Pipeline
from ...program.build import build_program
from ...program.functions import Lowering
from ...program.ir import Call, Item, Loop, Operand, Origin, Program
from ...program.memory import aligned
from ...schedule.records import NO_RECORDS, KernelRecord, Records, StaleRecordWarning
from ...schedule.rules.gpu.estimate import Work, tiled_microseconds
from ...schedule.rules.gpu.group import schedule_group
from ...schedule.rules.gpu.parts import best_parts
from ...schedule.rules.gpu.tensor_tiles import least_microseconds
from ...schedule.steps.trace import replay
from .kernels import Kernel, Parameter, kernels_of, workspace_bytes

__all__ = [
    "GPU_PASSES",
    "TENSOR_CORE_PASSES",
    "Launches",
    "launches_of",
    "lower_graph",
    "passes_of",
]

EXACT: tuple[Pass[Graph], ...] = (ExactProducts(), FoldConstants(), ExactProducts())
"""Products of constants that are quantised are found before those are folded, and after."""
GENERAL: tuple[Pass[Graph], ...] = (
    ExpandQuantization(),
    EliminateDead(),
    MergeCommon(),
    FoldScales(),
    FuseAttention(),
    FuseNorms(),
)


def _pipeline(*own: Pass[Graph]) -> Pipeline[Graph]:
    passes = (*EXACT, FoldConstants(), *own, FoldConstants(), *GENERAL)
    return Pipeline((*passes, InBodies(passes)))


GPU_PASSES: Pipeline[Graph] = Pipeline((*_pipeline().passes, ExpandIntegers(), EliminateDead()))
"""Passes over a graph before it becomes groups; ..."""
TENSOR_CORE_PASSES: Pipeline[Graph] = _pipeline(
    ByteProducts(raised=False, by_rows=True), BytePairs(), WideSums()
)
"""... for tensor cores."""


def passes_of(tensor_cores: bool, precision: Precision, hopper: bool = False) -> Pipeline[Graph]:
    """Passes over a graph for a GPU: its floats in 16 bits if asked for; softmax and long sums
    split."""
    passes = (TENSOR_CORE_PASSES if tensor_cores else GPU_PASSES).passes
    if precision is not Precision.FP32:
        own = (WideSums(), EliminateDead()) if tensor_cores else ()
        passes = (*passes, NarrowFloats(precision.dtype), *own)
    layout = (ChannelsLast(),) if tensor_cores else ()
    parts = partial(_parts, tensor_cores, hopper)
    return Pipeline((*passes, SplitSoftmax(), *layout, SplitSums(parts)))


def _parts(tensor_cores: bool, hopper: bool, *numbers: int) -> int:
    """See ``split_sums.Parts``."""
    work, time = Work(*numbers), tiled_microseconds
    if tensor_cores and work.element_bytes < FLOAT_BYTES:
        time = partial(least_microseconds, hopper=hopper)
    return best_parts(work, time, LEAST_PART)[0]


FLOAT_BYTES = 4
LEAST_PART = 256
"""Elements of a part of a product's sum."""
ALIGNED_BYTES = 16
MOST_WORKSPACE = 1 << 28
"""Bytes of arrays that fit no thread's memory; a function with more runs on one thread."""


@frozen
class _Group:
    """The loop program of a group, as ``program`` wants it."""

    function: Function
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@frozen
class Launches:
    """Kernels by name, their entries, the steps that launch them, and the memory they need."""

    kernels: Mapping[str, Kernel]
    entries: tuple[KernelEntry, ...]
    steps: tuple[Launch | Repeat, ...]
    memory_bytes: int


def lower_graph(
    graph: Graph,
    most_work: int,
    check: Callable[[str], None],
    intrinsics: Mapping[str, Intrinsic] | None = None,
    records: Records = NO_RECORDS,
    serial: bool = False,
) -> Program:
    """The program that computes a graph, its loops bound to blocks and threads, or ``serial``.

    check: called before each group, by what it is.  intrinsics: of tensor cores, if there are any.
    records: of schedules that a search found.
    Raises UnsupportedOperatorError for an operator that has no definition, WorkLimitError for loops
    that come to more than ``most_work``.
    """
    known: dict[str, Function] = {}

    def lower(graph: Graph, nodes: Sequence[Node]) -> _Group:
        check(f"lower, node {nodes[-1].origin!r}")
        definition = define_group(graph, nodes)
        text = to_text(definition.function)
        record = records.kernels.get(group_key(graph, nodes)) if records else None
        function = record and _recorded(definition, record, intrinsics, nodes[-1].origin)
        if function:
            return _Group(function, definition.inputs, definition.outputs)
        if text not in known:
            known[text] = definition.function if serial else _scheduled(definition, intrinsics)
        return _Group(known[text], definition.inputs, definition.outputs)

    return build_program(graph, Lowering(lower, most_work=most_work))


def _scheduled(definition: Definition, intrinsics: Mapping[str, Intrinsic] | None) -> Function:
    function = schedule_group(definition, intrinsics).function
    large = workspace_bytes(kernels_of(function)) > MOST_WORKSPACE
    return definition.function if large else function


def _recorded(
    definition: Definition,
    record: KernelRecord,
    intrinsics: Mapping[str, Intrinsic] | None,
    origin: str,
) -> Function | None:
    """The function by a record; None, with a warning, for a record that does not suit."""
    try:
        return replay(definition.function, record.steps, intrinsics or {}).function
    except ScheduleError as problem:
        warnings.warn(
            f"the schedule record of {origin!r} is of another version and is not used: {problem}; "
            "tune again",
            StaleRecordWarning,
            stacklevel=2,
        )
        return None


def launches_of(program: Program) -> Launches:
    """The kernels of a program's functions, and the order in which its calls launch them."""
    builder = _Builder(program)
    steps = builder.steps(program.calls)
    kernels = _aligned(builder.kernels, tuple(builder.entries), steps)
    return Launches(kernels, tuple(builder.entries), tuple(steps), builder.memory_bytes)


def _aligned(
    kernels: Mapping[str, Kernel], entries: Sequence[KernelEntry], steps: Sequence[Launch | Repeat]
) -> dict[str, Kernel]:
    """The kernels with the alignment that each parameter has in all launches.

    Every memory begins at a multiple of ``ALIGNED_BYTES``, a caller's too.  An alignment divides
    the size of its buffer, so that a read of whole vectors does not go beyond its end.
    """
    found: dict[str, list[int]] = {}
    for step in steps:
        if isinstance(step, Launch):
            known = found.setdefault(entries[step.kernel].name, [ALIGNED_BYTES] * len(step.places))
            for number, place in enumerate(step.places):
                moves = (place.offset, *(each.bytes for each in place.strides))
                known[number] = gcd(known[number], *moves)
    return {
        name: replace(
            kernel,
            parameters=tuple(
                each if each.private else replace(each, alignment=gcd(alignment, _size(each)))
                for each, alignment in zip(kernel.parameters, found[name], strict=True)
            ),
        )
        if name in found
        else kernel
        for name, kernel in kernels.items()
    }


def _size(parameter: Parameter) -> int:
    return parameter.buffer.elements * parameter.buffer.dtype.bytes


@dataclass(slots=True)
class _Builder:
    program: Program
    kernels: dict[str, Kernel] = field(default_factory=dict)
    entries: list[KernelEntry] = field(default_factory=list)
    workspace: int = 0
    _first: dict[str, tuple[int, tuple[Kernel, ...]]] = field(default_factory=dict)
    """The number of each function's first kernel, and its kernels."""

    def __post_init__(self) -> None:
        for function in self.program.functions:
            kernels = kernels_of(function)
            self._first[function.name] = len(self.entries), kernels
            for number, kernel in enumerate(kernels):
                name = f"{function.name}_{number}"
                shape = kernel.geometry
                self.kernels[name] = kernel
                given = kernel.shared.size
                self.entries.append(KernelEntry(name, shape.blocks, shape.threads, given))
            self.workspace = max(self.workspace, workspace_bytes(kernels))

    @property
    def memory_bytes(self) -> int:
        """Bytes of what calls leave for each other, followed by the workspace of one call."""
        return aligned(self.program.memory_bytes) + self.workspace

    def steps(self, items: Sequence[Item]) -> list[Launch | Repeat]:
        """Calls and loops in order."""
        found: list[Launch | Repeat] = []
        for each in items:
            found += self._call(each) if isinstance(each, Call) else self._loop(each)
        return found

    def _call(self, call: Call) -> list[Launch | Repeat]:
        first, kernels = self._first[call.function]
        function = next(each for each in self.program.functions if each.name == call.function)
        names = [buffer.name for buffer in (*function.inputs, *function.outputs)]
        given = dict(zip(names, call.arguments, strict=True))
        base = aligned(self.program.memory_bytes)
        found: list[Launch | Repeat] = []
        for number, kernel in enumerate(kernels, first):
            places = [
                _place(given[each.buffer.name])
                if each.offset is None
                else DevicePlace(Space.MEMORY, 0, base + each.offset, ())
                for each in kernel.parameters
            ]
            found.append(Launch(number, tuple(places)))
        return found

    def _loop(self, loop: Loop) -> list[Launch | Repeat]:
        body, last = self.steps(loop.calls), self.steps(loop.last)
        counter, condition, done, guard = (
            None if each is None else _place(each)
            for each in (loop.counter, loop.condition, loop.done, loop.guard)
        )
        count = min(loop.count, 2**62)
        head = Repeat(
            count, len(body), len(last), counter, condition, done, guard, loop.work, loop.origin
        )
        return [head, *body, *last]


SPACES = {
    Origin.INPUT: Space.INPUT,
    Origin.OUTPUT: Space.OUTPUT,
    Origin.CONSTANT: Space.CONSTANT,
    Origin.MEMORY: Space.MEMORY,
}


def _place(operand: Operand) -> DevicePlace:
    place = operand.place
    strides = tuple(Stride(each.depth, each.bytes, each.alternating) for each in place.strides)
    return DevicePlace(SPACES[place.origin], place.number, place.offset, strides)
