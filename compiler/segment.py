"""A graph as machine code: groups of nodes → loop programs → one program of calls → LLVM."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .backends.llvm.compile import LlvmOptions, compile_program
from .backends.llvm.module import CompiledProgram
from .backends.llvm.program import Call, Origin, Place, Program
from .backends.llvm.target import CpuTarget
from .dtypes import DType
from .errors import WorkLimitError
from .graph.block_channels import BlockChannels
from .graph.expand_convolutions import ExpandConvolutions
from .graph.expand_integers import ExpandIntegers
from .graph.fold_scales import FoldScales
from .graph.groups import group_nodes
from .graph.ir import Graph
from .graph.memory import plan_memory
from .graph.merge_common import MergeCommon
from .graph.operators.movement import Reshape
from .graph.pack_weights import PackWeights
from .graph.transpose_operands import TransposeOperands
from .loops.expressions import Buffer, Variable
from .loops.ir import Function, Store, loops
from .loops.text import to_text
from .loops.verify import verify
from .loops.work import work
from .lower.group import lower_group
from .lower.tiling import Machine
from .options import CompileOptions
from .passes import Pipeline
from .schedule.loops.threads import over_threads

__all__ = ["EXACT_PASSES", "PASSES", "Segment", "Step", "build_program", "compile_segment"]

Array = NDArray[Any]

PASSES: Pipeline[Graph] = Pipeline(
    (
        MergeCommon(),
        FoldScales(),
        BlockChannels(),
        ExpandConvolutions(),
        PackWeights(),
        TransposeOperands(),
    )
)
"""What a graph goes through before it becomes groups."""

EXACT_PASSES: Pipeline[Graph] = Pipeline((ExpandIntegers(), BlockChannels(), ExpandConvolutions()))
"""The same for a graph of integer operators: no float result changes by a bit."""


@dataclass(frozen=True, slots=True)
class Step:
    """A call of ``function`` on tensors; origins: the model's nodes it computes."""

    function: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    origins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """A compiled graph, and the calls it consists of."""

    graph: Graph
    steps: tuple[Step, ...]
    code: CompiledProgram

    @property
    def kernel_calls(self) -> int:
        """Calls of a run that compute something, and do not only copy."""
        return sum(bool(step.origins) for step in self.steps)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The graph's outputs, by name; each is an array of its own.

        inputs: of the types of the graph's inputs.
        """
        given = [np.asarray(inputs[name], order="C") for name in self.graph.inputs]
        return dict(zip(self.graph.outputs, self.code.run(given), strict=True))


def compile_segment(
    graph: Graph, options: LlvmOptions | None = None, passes: Pipeline[Graph] = PASSES
) -> Segment:
    """Compile a graph of general operators.

    Raises UnsupportedOperatorError for an operator that has no lowering.
    """
    graph = passes.run(graph)
    options = options or LlvmOptions()
    steps, program = build_program(graph, options)
    return Segment(graph, steps, compile_program(program, options))


def build_program(graph: Graph, options: LlvmOptions) -> tuple[tuple[Step, ...], Program]:
    """The calls that compute a graph, and the program of them.

    Raises UnsupportedOperatorError for an operator that has no lowering, WorkLimitError for loops
    that come to more than ``options`` allow.
    """
    building = _Building(graph, options.threads)
    machine = Machine.of_vectors(CpuTarget.at_level(options.level).vector_bytes)
    for nodes in group_nodes(graph):
        if len(nodes) == 1 and isinstance(nodes[0].operator, Reshape):
            building.aliases[nodes[0].output] = nodes[0].inputs[0]
            continue
        lowered = lower_group(graph, nodes, machine=machine)
        origins = tuple(dict.fromkeys(node.origin for node in nodes))
        building.step(lowered.function, lowered.inputs, lowered.outputs, origins)
    building.require_work(options.most_work)
    return building.finish()


@dataclass(slots=True)
class _Building:
    """aliases: tensors that are others under another shape."""

    graph: Graph
    threads: int
    functions: dict[str, Function] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    owners: dict[str, int] = field(default_factory=dict)
    """Tensors that are computed in the memory of an output: its number."""

    def step(
        self,
        function: Function,
        inputs: Sequence[str],
        outputs: Sequence[str],
        origins: tuple[str, ...],
    ) -> None:
        """Add a call; equal functions are one."""
        text = to_text(replace(function, name=""))
        if text not in self.functions:
            if self.threads > 1:
                function = over_threads(function).function
            self.functions[text] = replace(function, name=f"kernel{len(self.functions)}")
        name = self.functions[text].name
        self.steps.append(Step(name, tuple(inputs), tuple(outputs), origins))

    def require_work(self, allowed: int) -> None:
        """Raise WorkLimitError when the calls come to more."""
        works = {each.name: work(each) for each in self.functions.values()}
        found = sum(works[step.function] for step in self.steps)
        if found > allowed:
            most = max(self.steps, key=lambda step: works[step.function])
            raise WorkLimitError(
                f"the loops come to {found:.2g} reads and writes of elements, "
                f"{works[most.function]:.2g} of them in {', '.join(most.origins)}; allowed are "
                f"{allowed:.2g}; allow more (--most-work, DOVETAIL_MOST_WORK) or check the "
                "attributes and shapes there"
            )

    def root(self, name: str) -> str:
        """The tensor whose memory ``name`` is."""
        while name in self.aliases:
            name = self.aliases[name]
        return name

    def finish(self) -> tuple[tuple[Step, ...], Program]:
        """Give every tensor its place."""
        if CompileOptions.from_environment().verify:
            for function in self.functions.values():
                verify(function, trust_data=True)
        graph = self.graph
        computed = {name for step in self.steps for name in step.outputs}
        copies: list[tuple[str, int]] = []
        for number, name in enumerate(graph.outputs):
            root = self.root(name)
            if root in computed and root not in self.owners:
                self.owners[root] = number
            else:
                copies.append((root, number))
        offsets, size = self.memory(computed, [root for root, _ in copies])
        constants = {
            name: array
            for name, array in graph.constants.items()
            if any(name == self.root(each) for step in self.steps for each in step.inputs)
            or any(name == root for root, _ in copies)
        }
        places = {name: Place(Origin.INPUT, n) for n, name in enumerate(graph.inputs)}
        places |= {name: Place(Origin.CONSTANT, n) for n, name in enumerate(constants)}
        places |= {name: Place(Origin.MEMORY, 0, offset) for name, offset in offsets.items()}
        places |= {name: Place(Origin.OUTPUT, n) for name, n in self.owners.items()}
        calls = [
            Call(
                step.function,
                tuple(places[self.root(name)] for name in (*step.inputs, *step.outputs)),
            )
            for step in self.steps
        ]
        for root, number in copies:
            kind = graph.types[root]
            self.step(_copy(kind.elements, kind.dtype), (root,), (graph.outputs[number],), ())
            target = Place(Origin.OUTPUT, number)
            calls.append(Call(self.steps[-1].function, (places[root], target)))
        return tuple(self.steps), Program(
            tuple(self.functions.values()),
            tuple(calls),
            self.buffers(graph.inputs),
            self.buffers(graph.outputs),
            constants,
            size,
        )

    def buffers(self, names: Sequence[str]) -> tuple[Buffer, ...]:
        """Tensors as the program's caller sees them."""
        kinds = self.graph.types
        return tuple(Buffer(name, kinds[name].shape, kinds[name].dtype) for name in names)

    def memory(self, computed: set[str], copied: Sequence[str]) -> tuple[Mapping[str, int], int]:
        """Offsets of what is computed but not returned, and the bytes they take."""
        lifetimes: dict[str, tuple[int, int]] = {}
        for number, step in enumerate(self.steps):
            for name in step.outputs:
                if name not in self.owners:
                    lifetimes[name] = (number, number)
            for name in map(self.root, step.inputs):
                if name in lifetimes:
                    lifetimes[name] = (lifetimes[name][0], number)
        for name in copied:
            if name in lifetimes:
                lifetimes[name] = (lifetimes[name][0], len(self.steps))
        types = self.graph.types
        sizes = {name: types[name].elements * types[name].dtype.bytes for name in lifetimes}
        plan = plan_memory(lifetimes, sizes)
        return plan.offsets, plan.bytes


def _copy(elements: int, dtype: DType) -> Function:
    source, target = Buffer("in0", (elements,), dtype), Buffer("out0", (elements,), dtype)
    i = Variable("i")
    body = loops((("i", elements),), Store(target, (i,), source[i]))
    return Function("copy", (source,), (target,), body)
