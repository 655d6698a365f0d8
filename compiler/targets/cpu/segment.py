"""A graph as machine code: groups of nodes → loop programs → one program of calls → LLVM."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import WorkLimitError
from ...graph.ir import Graph
from ...graph.passes.eliminate_dead import EliminateDead
from ...graph.passes.fold_constants import FoldConstants
from ...graph.passes.fold_scales import FoldScales
from ...graph.passes.in_bodies import InBodies
from ...graph.passes.merge_common import MergeCommon
from ...loops.expressions import Buffer
from ...loops.verify import verify
from ...options import CompileOptions
from ...pipeline.passes import Pass, Pipeline
from ...program.calls import Calls
from ...program.ir import Origin, Place, Program, stops
from ...program.steps import Shared, Step
from ...schedule.records import NO_RECORDS, Records
from ...schedule.rules.cpu.machine import Machine
from .layouts.block_channels import BlockChannels
from .layouts.block_rows import BlockRows
from .layouts.byte_products import ByteProducts
from .layouts.exact_products import ExactProducts
from .layouts.expand_convolutions import ExpandConvolutions
from .layouts.expand_integers import ExpandIntegers
from .layouts.expand_quantization import ExpandQuantization
from .layouts.pack_weights import PackWeights
from .layouts.share_borders import ShareBorders
from .layouts.transpose_operands import TransposeOperands
from .llvm.compile import LlvmOptions, compile_program
from .llvm.module import CompiledProgram
from .llvm.target import CpuTarget

__all__ = [
    "EXACT_PASSES",
    "Segment",
    "Step",
    "build_program",
    "compile_segment",
    "float_passes",
]

Array = NDArray[Any]

EXACT_PASSES: Pipeline[Graph] = Pipeline(
    (
        ExpandIntegers(),
        BlockChannels(winograd=False),
        ExpandConvolutions(),
        PackWeights(),
        EliminateDead(),
        ShareBorders(),
    )
)
"""As ``float_passes`` for a graph of integer operators: no float result changes by a bit."""


def float_passes(winograd: bool, records: Records = NO_RECORDS) -> Pipeline[Graph]:
    """What a graph goes through before it becomes groups.

    winograd: whether convolutions may be computed by Winograd's tiles.  records: that say by which.
    """
    passes: tuple[Pass[Graph], ...] = (
        FoldConstants(),
        ExactProducts(),
        FoldConstants(),
        ByteProducts(),
        ExpandQuantization(),
        EliminateDead(),
        MergeCommon(),
        FoldScales(),
        BlockChannels(winograd=winograd, tiles=records.tiles),
        ExpandConvolutions(),
        PackWeights(),
        TransposeOperands(),
    )
    return Pipeline((*passes, InBodies((*passes, BlockRows())), BlockRows()))


@dataclass(frozen=True, slots=True)
class Segment:
    """A compiled graph, and the calls it consists of."""

    graph: Graph
    steps: tuple[Step, ...]
    code: CompiledProgram

    @property
    def kernel_calls(self) -> int:
        """Calls of a run that compute something, and do not only copy; those in loops once."""
        return sum(bool(step.origins) for step in self.steps)

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The graph's outputs, by name; each is an array of its own.

        inputs: of the types of the graph's inputs.
        Raises WorkLimitError when a loop does not end.
        """
        given = [np.asarray(inputs[name], order="C") for name in self.graph.inputs]
        return dict(zip(self.graph.outputs, self.code.run(given), strict=True))


def compile_segment(
    graph: Graph, options: LlvmOptions | None = None, passes: Pipeline[Graph] | None = None
) -> Segment:
    """Compile a graph of general operators.

    passes: by default those of floats.

    Raises UnsupportedOperatorError for an operator that has no lowering, WorkLimitError for loops
    that come to more than ``options`` allow.
    """
    options = options or LlvmOptions()
    graph = (passes or float_passes(options.winograd, options.records)).run(graph)
    steps, program = build_program(graph, options)
    return Segment(graph, steps, compile_program(program, options))


def build_program(graph: Graph, options: LlvmOptions) -> tuple[tuple[Step, ...], Program]:
    """The calls that compute a graph, and the program of them.

    Raises as ``compile_segment``.
    """
    machine = Machine.of_vectors(CpuTarget.at_level(options.level).vector_bytes, options.threads)
    shared = Shared(machine, options.threads, options.records)
    calls = Calls(graph, shared)
    _require_work(calls, options.most_work)
    if CompileOptions.from_environment().verify:
        for function in shared.functions.values():
            verify(function, trust_data=True)
    inputs = {name: Place(Origin.INPUT, n) for n, name in enumerate(graph.inputs)}
    outputs = tuple(Place(Origin.OUTPUT, n) for n in range(len(graph.outputs)))
    items = calls.items(inputs, outputs)
    program = Program(
        tuple(shared.functions.values()),
        items,
        _buffers(graph, graph.inputs),
        _buffers(graph, graph.outputs),
        shared.constants,
        calls.bytes,
        options.most_work,
        tuple(stops(items)),
    )
    return calls.all_steps(), program


def _require_work(calls: Calls, allowed: int) -> None:
    works = calls.works()
    found = sum(work for work, _ in works)
    if found > allowed:
        most, where = max(works)
        raise WorkLimitError(
            f"the loops come to {found:.2g} reads and writes of elements, {most:.2g} of them in "
            f"{where}; allowed are {allowed:.2g}; allow more (--most-work, DOVETAIL_MOST_WORK) or "
            "check the attributes and shapes there"
        )


def _buffers(graph: Graph, names: tuple[str, ...]) -> tuple[Buffer, ...]:
    """Tensors as the program's caller sees them."""
    return tuple(Buffer(name, graph.types[name].shape, graph.types[name].dtype) for name in names)
