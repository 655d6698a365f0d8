"""The ``cpu`` target of any model: machine code in the module, or the model to be specialised.

A model whose shapes are fixed, once ``dims`` are bound, becomes machine code.  Others go into the
module as they are: the device compiles them for the shapes and values it is given.
"""

from collections.abc import Mapping

from dovetail.isa.cache import cache_directory
from dovetail.runtime.errors import ModuleError
from dovetail.runtime.manifest import read_value, write_value
from dovetail.runtime.module import Module
from dovetail.runtime.native.content import pack_constants
from dovetail.runtime.native.model import ModelPart
from dovetail.runtime.native.part import CpuPart
from dovetail.runtime.tensors import TensorSignature

from ...front.onnx.context import NeedsValueError
from ...front.onnx.source import Imported, SourceModel
from ...graph.ir import Graph
from ...graph.operators.integer.conversions import Quantize
from ...graph.passes.integer_layers.recognition import is_quantized, recognise
from ...graph.passes.simplify import simplify
from ...graph.text import to_text
from ...graph.verify import verify
from ...options import CompileOptions, CpuOptions
from ...pipeline.passes import Pass, Pipeline
from ...pipeline.trace import Trace
from ...program.ir import Program
from ...program.text import to_text as program_text
from ...schedule.records import Records
from .executor.executor import Executor
from .llvm.compile import LlvmOptions, build_program_code
from .llvm.target import CpuTarget
from .segment import EXACT_PASSES, float_passes, lower_graph

__all__ = [
    "compile_graph",
    "compile_imported",
    "compile_native",
    "load_specialising",
    "prepared_graph",
    "signature_of",
]


def compile_native(
    model: SourceModel,
    dims: Mapping[str, int],
    trace: Trace,
    options: LlvmOptions | None = None,
    passes: tuple[Pass[Graph], ...] = (),
) -> Module:
    """Compile a model for CPUs.

    dims: sizes of symbolic dimensions.  passes: the user's; a model that is compiled as it runs
    has none.
    Raises ModelError for a malformed model or a dimension that it does not have,
    UnsupportedOperatorError for what there is no code for.
    """
    options = options or LlvmOptions()
    model = model.bind(dims)
    try:
        imported = _imported(model)
    except NeedsValueError:
        imported = None
    if imported is None:
        return _specialising(model, options)
    return compile_imported(imported, trace, options, passes)


def compile_imported(
    imported: Imported,
    trace: Trace,
    options: LlvmOptions | None = None,
    passes: tuple[Pass[Graph], ...] = (),
) -> Module:
    """Compile a graph for CPUs: by exact integer layers if they compute all of it."""
    options = options or LlvmOptions()
    trace.step("import", lambda: to_text(imported.graph))
    layers = _integer_layers(imported)
    if layers is None:
        own, graph = float_passes(options.winograd, options.records), imported.graph
    else:
        trace.step("integer_layers", lambda: to_text(layers))
        verify(layers)
        own, graph = EXACT_PASSES, simplify(layers, trace.observers)
    if passes:
        graph = Pipeline(passes, trace.observers).run(graph)
    verify(graph)
    return compile_graph(graph, own, trace, options)


def compile_graph(
    graph: Graph, passes: Pipeline[Graph], trace: Trace, options: LlvmOptions | None = None
) -> Module:
    """Compile a graph for CPUs, once ``passes`` have made its operators general ones."""
    numbers_only = [
        node.inputs[0]
        for node in graph.nodes
        if isinstance(node.operator, Quantize) and node.inputs[0] in graph.inputs
    ]
    graph = Pipeline(passes.passes, trace.observers).run(graph)
    trace.step("prepare", lambda: to_text(graph))
    options = options or LlvmOptions()
    program = lower_graph(graph, options)
    trace.step("program", lambda: program_text(program))
    return _module(program, options, numbers_only, trace)


def load_specialising(part: ModelPart) -> Executor:
    """What runs a model that is compiled as it runs.

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
    model: SourceModel, dims: Mapping[str, int], winograd: bool = True
) -> tuple[Graph, Pipeline[Graph]]:
    """The graph of a model for CPUs, and the passes it goes through.

    winograd: as of ``float_passes``.

    Raises ModelError for a model whose shapes stay open.
    """
    bound = model.bind(dims)
    imported = _imported(bound) or bound.to_graph()
    return prepared(imported, winograd)


def prepared(imported: Imported, winograd: bool = True) -> tuple[Graph, Pipeline[Graph]]:
    """As ``prepared_graph``, of a model that is imported."""
    layers = _integer_layers(imported)
    if layers is not None:
        return simplify(layers, ()), EXACT_PASSES
    return imported.graph, float_passes(winograd)


def signature_of(model: SourceModel, dims: Mapping[str, int]) -> tuple[TensorSignature, ...]:
    """The inputs of the graph that ``prepared_graph`` gives."""
    graph, _ = prepared_graph(model, dims)
    return tuple(
        TensorSignature(name, graph.types[name].shape, str(graph.types[name].dtype))
        for name in graph.inputs
    )


def _imported(model: SourceModel) -> Imported | None:
    """The model's graph; None when its shapes are open.

    An open batch is 1 where that makes all of it integer layers, whose operators have that batch.
    """
    opened = model.open_sizes()
    if not opened:
        return model.to_graph()
    if not model.quantizes or any(None in each.shape[1:] for each in opened):
        return None
    imported = model.to_graph(batch=1)
    return imported if _integer_layers(imported) else None


def _integer_layers(imported: Imported) -> Graph | None:
    """The graph of integer operators, if integer layers are all that the model consists of."""
    if not is_quantized(imported.graph):
        return None
    return recognise(imported.graph, imported.kinds).graph


def _specialising(model: SourceModel, options: LlvmOptions) -> Module:
    inputs, outputs = (
        tuple(
            TensorSignature(
                each.name, tuple(-1 if n is None else n for n in each.shape), each.dtype
            )
            for each in signatures
        )
        for signatures in (model.inputs, model.outputs)
    )
    part = ModelPart(
        inputs,
        outputs,
        model.to_bytes(),
        write_value(options.cpu, []),
        write_value(options.records, []),
    )
    return Module("cpu", part.inputs, part.outputs, (part,))


def _module(
    program: Program,
    options: LlvmOptions,
    numbers_only: list[str],
    trace: Trace,
) -> Module:
    code = build_program_code(program, options)
    trace.step("llvm", lambda: f"{len(code.image.code)} bytes")
    target = CpuTarget.at_level(options.level)
    constants, data = pack_constants(list(program.constants.values()))
    inputs, outputs = (
        tuple(TensorSignature(b.name, b.shape, str(b.dtype)) for b in buffers)
        for buffers in (program.inputs, program.outputs)
    )
    part = CpuPart(
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
    return Module("cpu", inputs, outputs, (part,))
