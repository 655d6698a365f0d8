"""Parts of modules for GPUs."""

from collections.abc import Callable, Mapping

from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.native.content import pack_constants
from dovetail.runtime.tensors import TensorSignature

from ...graph.ir import Graph
from ...graph.text import to_text
from ...graph.verify import verify
from ...loops.intrinsic import Intrinsic
from ...options import CompileOptions
from ...pipeline.passes import Pipeline
from ...pipeline.trace import Trace
from ...program.text import to_text as program_text
from ...program.verify import verify as verify_program
from .lower import GPU_PASSES, TENSOR_CORE_PASSES, Launches, launches_of, lower_graph

__all__ = ["Backend", "compile_graph"]

Backend = Callable[[Launches], str]
"""The source of kernels, in the language of one kind of device."""


def compile_graph(
    graph: Graph,
    target: str,
    backend: Backend,
    options: CompileOptions,
    trace: Trace,
    intrinsics: Mapping[str, Intrinsic] | None = None,
) -> GpuPart:
    """The kernels of a graph, and their launches.

    intrinsics: of tensor cores, where the device has them.
    Raises UnsupportedOperatorError for an operator that there are no loops for.
    """
    passes = TENSOR_CORE_PASSES if intrinsics else GPU_PASSES
    graph = Pipeline((*options.passes, *passes.passes), trace.observers).run(graph)
    verify(graph)
    trace.step("prepare", lambda: to_text(graph))
    program = lower_graph(graph, options.cpu.most_work, trace.check, intrinsics)
    if options.verify:
        verify_program(program, intrinsics)
    trace.step("program", lambda: program_text(program))
    launches = launches_of(program)
    source = backend(launches)
    trace.step(target, lambda: source)
    constants, data = pack_constants(list(program.constants.values()))
    inputs, outputs = (
        tuple(TensorSignature(b.name, b.shape, str(b.dtype)) for b in buffers)
        for buffers in (program.inputs, program.outputs)
    )
    return GpuPart(
        target,
        inputs,
        outputs,
        source.encode(),
        launches.entries,
        launches.steps,
        constants,
        data,
        launches.memory_bytes,
        program.most_work,
        program.origins,
    )
