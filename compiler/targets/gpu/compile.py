"""Parts of modules for GPUs."""

from collections.abc import Callable

from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.native.content import pack_constants
from dovetail.runtime.tensors import TensorSignature

from ...graph.ir import Graph
from ...graph.text import to_text
from ...graph.verify import verify
from ...options import CompileOptions
from ...pipeline.passes import Pipeline
from ...pipeline.trace import Trace
from ...program.text import to_text as program_text
from ...program.verify import verify as verify_program
from .lower import GPU_PASSES, Launches, launches_of, lower_graph

__all__ = ["Backend", "compile_graph"]

Backend = Callable[[Launches], str]
"""The source of kernels, in the language of one kind of device."""


def compile_graph(
    graph: Graph, target: str, backend: Backend, options: CompileOptions, trace: Trace
) -> GpuPart:
    """The kernels of a graph, and their launches.

    Raises UnsupportedOperatorError for an operator that there are no loops for.
    """
    graph = Pipeline((*options.passes, *GPU_PASSES.passes), trace.observers).run(graph)
    verify(graph)
    trace.step("prepare", lambda: to_text(graph))
    program = lower_graph(graph, options.cpu.most_work, trace.check)
    if options.verify:
        verify_program(program)
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
