"""Parts of modules for GPUs."""

from collections.abc import Callable, Mapping
from dataclasses import field

from dovetail.isa.frozen import frozen
from dovetail.runtime.gpu.part import GpuPart
from dovetail.runtime.native.content import pack_constants
from dovetail.runtime.tensors import TensorSignature

from ...errors import UnsupportedOperatorError
from ...graph.ir import Graph
from ...graph.text import to_text
from ...graph.verify import verify
from ...loops.intrinsic import Intrinsic
from ...loops.ir import Function
from ...options import CompileOptions
from ...pipeline.passes import Pipeline
from ...pipeline.trace import Trace
from ...program.ir import Call, Operand, Origin, Place, Program, all_calls
from ...program.text import to_text as program_text
from ...program.verify import verify as verify_program
from ...schedule.rules.gpu.choice import is_group
from .lower import Launches, launches_of, lower_graph, passes_of
from .records import read_records

__all__ = ["Backend", "compile_function", "compile_graph", "prepare_graph"]


def _empty(launches: Launches) -> bytes:
    """There is source alone."""
    return b""


def _nothing(function: Function) -> None:
    """Every loop program can be said."""


@frozen
class Backend:
    """The language of one kind of device.

    source: of kernels.  binary: the same as a file for its runtime, or nothing.  refused: what a
    loop program needs and the language has not.  intrinsics: products on tensor cores, which
    schedules may then use.  serial: loops stay as they are defined, without blocks and threads.
    """

    source: Callable[[Launches], str]
    binary: Callable[[Launches], bytes] = _empty
    refused: Callable[[Function], str | None] = _nothing
    intrinsics: Mapping[str, Intrinsic] = field(default_factory=dict)
    serial: bool = False


def prepare_graph(graph: Graph, backend: Backend, options: CompileOptions, trace: Trace) -> Graph:
    """The graph as it becomes groups."""
    hopper = any(map(is_group, backend.intrinsics))
    passes = passes_of(bool(backend.intrinsics), options.precision, hopper)
    graph = Pipeline((*options.passes, *passes.passes), trace.observers).run(graph)
    verify(graph)
    trace.step("prepare", lambda: to_text(graph))
    return graph


def compile_graph(
    graph: Graph, target: str, backend: Backend, options: CompileOptions, trace: Trace
) -> GpuPart:
    """The kernels of a prepared graph, and their launches.

    Raises UnsupportedOperatorError for an operator that there are no loops for, or whose loops the
    language cannot say.
    """
    records = read_records(options.records, target, options.gpu)
    how = backend.intrinsics, records, backend.serial
    program = lower_graph(graph, options.cpu.most_work, trace.check, *how)
    _require(program, graph, target, backend)
    if options.verify:
        verify_program(program, backend.intrinsics)
    trace.step("program", lambda: program_text(program))
    part = _part(program, target, backend)
    trace.step(target, lambda: bytes(part.source).decode())
    return part


def compile_function(function: Function, target: str, backend: Backend) -> GpuPart:
    """One loop program alone."""
    arguments = [
        Operand(buffer.name, Place(origin, number))
        for origin, buffers in ((Origin.INPUT, function.inputs), (Origin.OUTPUT, function.outputs))
        for number, buffer in enumerate(buffers)
    ]
    call = Call(function.name, tuple(arguments))
    program = Program((function,), (call,), function.inputs, function.outputs, {}, 0)
    return _part(program, target, backend)


def _part(program: Program, target: str, backend: Backend) -> GpuPart:
    launches = launches_of(program)
    source = backend.source(launches)
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
        backend.binary(launches),
    )


def _require(program: Program, graph: Graph, target: str, backend: Backend) -> None:
    """Raise UnsupportedOperatorError, by the name of a node, for what the language cannot say."""
    refused = {each.name: backend.refused(each) for each in program.functions}
    kinds = {node.origin: type(node.operator).__name__ for node in graph.nodes}
    for call in all_calls(program.calls):
        missing = refused[call.function]
        if missing is not None:
            name = call.origins[-1] if call.origins else ""
            what = f"node {name!r} ({kinds.get(name, 'in a body')})" if name else "an output"
            raise UnsupportedOperatorError(
                f"{what} needs {missing}, which {target} has not; compile for cpu, or change the "
                "model's types"
            )
