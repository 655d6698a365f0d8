"""Parts of modules for CPUs: machine code, or the model to be specialised.

A model whose shapes are fixed, once ``dims`` are bound, becomes machine code.  Others go into the
module as they are: the device compiles them for the shapes and values it is given.
"""

from collections.abc import Mapping

from dovetail.isa.cache import cache_directory
from dovetail.runtime.errors import ModuleError
from dovetail.runtime.manifest import read_value, write_value
from dovetail.runtime.native.content import pack_constants
from dovetail.runtime.native.model import ModelPart
from dovetail.runtime.native.part import CpuPart
from dovetail.runtime.native.program import ProgramCode
from dovetail.runtime.tensors import TensorSignature

from ...errors import ModelError
from ...front.onnx.source import SourceModel
from ...front.source import Imported, Source
from ...graph.ir import Graph
from ...graph.operators.integer.conversions import Quantize
from ...graph.passes.expand_integers.expand import is_integer
from ...graph.passes.integer_layers.prepare import with_integer_layers
from ...graph.passes.integer_layers.recognition import recognise
from ...graph.text import to_text
from ...graph.verify import verify
from ...options import CompileOptions, CpuOptions
from ...pipeline.passes import Pass, Pipeline
from ...pipeline.trace import Trace
from ...program.ir import Program
from ...program.text import to_text as program_text
from ...schedule.records import NO_RECORDS, Records
from .executor.executor import Executor
from .llvm.build import FunctionBuilds
from .llvm.compile import LlvmOptions, build_program_code
from .llvm.target import CpuTarget
from .segment import EXACT_PASSES, MIXED_PASSES, float_passes, lower_graph

__all__ = [
    "compile_graph",
    "compile_imported",
    "compile_specialising",
    "import_fixed",
    "load_specialising",
    "part_of",
    "prepared_graph",
    "signature_of",
]


def compile_imported(
    imported: Imported,
    trace: Trace,
    options: LlvmOptions | None = None,
    passes: tuple[Pass[Graph], ...] = (),
) -> CpuPart:
    """Compile a graph for CPUs: integer layers by exact integers, all else as it is.

    passes: the user's.
    Raises UnsupportedOperatorError for what there is no code for.
    """
    options = options or LlvmOptions()
    graph, own = _prepared(imported, options.winograd, options.records, trace)
    if passes:
        graph = Pipeline(passes, trace.observers).run(graph)
    verify(graph)
    return compile_graph(graph, own, trace, options)


def compile_graph(
    graph: Graph, passes: Pipeline[Graph], trace: Trace, options: LlvmOptions | None = None
) -> CpuPart:
    """Compile a graph for CPUs, once ``passes`` have made its operators general ones."""
    numbers_only = [
        node.inputs[0]
        for node in graph.nodes
        if isinstance(node.operator, Quantize) and node.inputs[0] in graph.inputs
    ]
    graph = Pipeline(passes.passes, trace.observers).run(graph)
    trace.step("prepare", lambda: to_text(graph))
    options = options or LlvmOptions()
    with FunctionBuilds(options) as builds:
        program = lower_graph(graph, options, builds)
        trace.step("program", lambda: program_text(program))
        code = build_program_code(program, options, builds)
    trace.step("llvm", lambda: f"{len(code.image.code)} bytes")
    return part_of(program, code, options, numbers_only)


def load_specialising(part: ModelPart) -> Executor:
    """Executor of a model that is compiled as it runs.

    Raises ModuleError when it cannot be read.
    """
    cpu = read_value(CpuOptions, part.options, "module", path="options")
    records = read_value(Records, part.records, "module", path="records")
    try:
        model = SourceModel.from_bytes(bytes(part.model))
    except ValueError as error:
        raise ModuleError(f"the module's model cannot be read: {error}") from None
    verify = CompileOptions.from_environment().verify
    options = LlvmOptions.of(cpu, cache=cache_directory(), records=records, verify=verify)
    return Executor(model, options)


def prepared_graph(
    model: Source, dims: Mapping[str, int], winograd: bool = True
) -> tuple[Graph, Pipeline[Graph]]:
    """The graph of a model for CPUs, and the passes it goes through.

    winograd: as of ``float_passes``.

    Raises ModelError for a model whose shapes stay open.
    """
    bound = model.bind(dims)
    imported = import_fixed(bound) or bound.to_graph()
    return prepared(imported, winograd)


def prepared(imported: Imported, winograd: bool = True) -> tuple[Graph, Pipeline[Graph]]:
    """As ``prepared_graph``, of a model that is imported."""
    return _prepared(imported, winograd, NO_RECORDS, Trace(CompileOptions()))


def signature_of(model: Source, dims: Mapping[str, int]) -> tuple[TensorSignature, ...]:
    """The inputs of the graph that ``prepared_graph`` gives."""
    graph, _ = prepared_graph(model, dims)
    return tuple(
        TensorSignature(name, graph.types[name].shape, str(graph.types[name].dtype))
        for name in graph.inputs
    )


def import_fixed(model: Source) -> Imported | None:
    """The model's graph; None when its shapes are open.

    An open batch is 1 where that makes all of it integer layers, whose operators have that batch.
    """
    opened = model.open_sizes()
    if not opened:
        return model.to_graph()
    if not model.quantizes or any(None in each.shape[1:] for each in opened):
        return None
    imported = model.to_graph(batch=1)
    return None if recognise(imported.graph, imported.kinds).problem else imported


def _prepared(
    imported: Imported, winograd: bool, records: Records, trace: Trace
) -> tuple[Graph, Pipeline[Graph]]:
    """The graph with its integer layers, and the passes it goes through."""
    graph = with_integer_layers(imported.graph, imported.kinds, trace)
    if graph is None:
        return imported.graph, float_passes(winograd, records)
    return graph, EXACT_PASSES if is_integer(graph) else MIXED_PASSES


def compile_specialising(model: Source, options: LlvmOptions) -> ModelPart:
    """A model that is compiled as it runs.

    Raises ModelError when it is not ONNX, saying which of its sizes are open.
    """
    if not isinstance(model, SourceModel):
        model.to_graph()  # Says which sizes are open.
        raise ModelError("only ONNX models are compiled as they run; bind all sizes (--dim)")
    inputs, outputs = (
        tuple(
            TensorSignature(
                each.name, tuple(-1 if n is None else n for n in each.shape), each.dtype
            )
            for each in signatures
        )
        for signatures in (model.inputs, model.outputs)
    )
    return ModelPart(
        inputs,
        outputs,
        model.to_bytes(),
        write_value(options.cpu, []),
        write_value(options.records, []),
    )


def part_of(
    program: Program, code: ProgramCode, options: LlvmOptions, numbers_only: list[str]
) -> CpuPart:
    """A part that is ``code`` of a program; numbers_only: as of ``CpuPart``."""
    target = CpuTarget.at_level(options.level)
    constants, data = pack_constants(list(program.constants.values()))
    inputs, outputs = (
        tuple(TensorSignature(b.name, b.shape, str(b.dtype)) for b in buffers)
        for buffers in (program.inputs, program.outputs)
    )
    return CpuPart(
        inputs,
        outputs,
        code,
        constants,
        data,
        target.cpu,
        tuple(target.flags),
        program.origins,
        tuple(numbers_only),
    )
