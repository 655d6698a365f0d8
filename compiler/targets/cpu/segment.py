"""A graph as machine code: groups of nodes → loop programs → one program of calls → LLVM."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen

from ...graph.ir import Graph, Node
from ...graph.passes.byte_products import ByteProducts
from ...graph.passes.eliminate_dead import EliminateDead
from ...graph.passes.exact_products import ExactProducts
from ...graph.passes.expand_integers.expand import ExpandIntegers
from ...graph.passes.expand_quantization import ExpandQuantization
from ...graph.passes.fold_constants import FoldConstants
from ...graph.passes.fold_scales import FoldScales
from ...graph.passes.in_bodies import InBodies
from ...graph.passes.merge_common import MergeCommon
from ...pipeline.passes import Pass, Pipeline
from ...program.build import build_program
from ...program.functions import Kernel, Lowering
from ...program.ir import Program
from ...program.verify import verify
from ...schedule.records import NO_RECORDS, Records
from .layouts.block_channels import BlockChannels
from .layouts.block_rows import BlockRows
from .layouts.expand_convolutions import ExpandConvolutions
from .layouts.pack_weights import PackWeights
from .layouts.share_borders import ShareBorders
from .layouts.transpose_operands import TransposeOperands
from .llvm.build import FunctionBuilds
from .llvm.compile import LlvmOptions, compile_program
from .llvm.intrinsics import INTRINSICS
from .llvm.module import CompiledProgram
from .llvm.target import CpuTarget
from .recorded import tuned_kernel

__all__ = [
    "EXACT_PASSES",
    "MIXED_PASSES",
    "Segment",
    "compile_segment",
    "float_passes",
    "lower_graph",
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


GENERAL: tuple[Pass[Graph], ...] = (
    FoldConstants(),
    ExactProducts(),
    FoldConstants(),
    ByteProducts(),
    ExpandQuantization(),
    EliminateDead(),
    MergeCommon(),
    FoldScales(),
)
"""Passes over general operators, before activations are blocked."""


def float_passes(winograd: bool, records: Records = NO_RECORDS) -> Pipeline[Graph]:
    """Passes over a graph before it becomes groups.

    winograd: whether convolutions may be computed by Winograd's tiles.  records: that say by which.
    """
    passes: tuple[Pass[Graph], ...] = (
        *GENERAL,
        BlockChannels(winograd=winograd, tiles=records.tiles),
        ExpandConvolutions(),
        PackWeights(),
        TransposeOperands(),
    )
    return Pipeline((*passes, InBodies((*passes, BlockRows())), BlockRows()))


MIXED_PASSES: Pipeline[Graph] = Pipeline(
    (*GENERAL, InBodies(float_passes(winograd=False).passes), *EXACT_PASSES.passes)
)
"""For a graph of integer operators and others: no result of the first changes by a bit."""


@frozen
class Segment:
    """A compiled graph, and its program."""

    graph: Graph
    program: Program
    code: CompiledProgram

    @property
    def kernel_calls(self) -> int:
        """Calls of a run that compute something, and do not only copy; those in loops once."""
        return len(self.program.origins)

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
    with FunctionBuilds(options) as builds:
        program = lower_graph(graph, options, builds)
        return Segment(graph, program, compile_program(program, options, builds))


def lower_graph(
    graph: Graph, options: LlvmOptions, builds: FunctionBuilds | None = None
) -> Program:
    """The program that computes a graph.

    builds: gets each function as soon as it is scheduled.
    Raises as ``compile_segment``.
    """
    machine = CpuTarget.at_level(options.level).machine(options.threads)
    tuned = partial(tuned_kernel, machine=machine, records=options.records, known={})

    def lower(graph: Graph, nodes: Sequence[Node]) -> Kernel:
        options.check(f"lower, node {nodes[-1].origin!r}")
        return tuned(graph, nodes)

    lowering = Lowering(lower, INTRINSICS, options.threads, options.most_work)
    if builds is not None:
        lowering = replace(lowering, observe=builds.start)
    program = build_program(graph, lowering)
    if options.verify:
        verify(program, INTRINSICS)
    return program
