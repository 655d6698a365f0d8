"""The ``cpu`` target of any model: machine code in the module, or the model to be specialised.

A model whose shapes are fixed, once ``dims`` are bound, becomes machine code.  Others go into the
module as they are: the device compiles them for the shapes and values it is given.
"""

from collections.abc import Mapping

import onnx

from dovetail.isa.cache import cache_directory
from dovetail.runtime.errors import ModuleError
from dovetail.runtime.manifest import read_value, write_value
from dovetail.runtime.module import Module
from dovetail.runtime.native.content import pack_constants
from dovetail.runtime.native.part import CpuPart, ModelPart
from dovetail.runtime.tensors import TensorSignature

from ...errors import CompilerError, ModelError, UnsupportedOperatorError
from ...front.onnx.context import NeedsValueError, Tensor
from ...front.onnx.element_types import type_name
from ...front.onnx.integer.onnx import import_onnx
from ...front.onnx.integer.onnx_nodes import QUANTIZED_OPERATORS
from ...front.onnx.model import import_model
from ...front.onnx.signatures import InputSignature, bind_dimensions, input_signatures
from ...graph.ir import Graph, GraphBuilder
from ...graph.operators.integer.conversions import Quantize
from ...graph.passes.simplify import simplify
from ...graph.slices import slice_graph
from ...graph.text import to_text
from ...graph.types import TensorType
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
    "compile_native",
    "is_integer",
    "load_specialising",
    "prepared_graph",
    "signature_of",
]


def compile_native(
    model: onnx.ModelProto,
    dims: Mapping[str, int],
    trace: Trace,
    options: LlvmOptions | None = None,
    passes: tuple[Pass[Graph], ...] = (),
) -> Module:
    """Compile a model for CPUs.

    dims: sizes of symbolic dimensions.  passes: over the imported graph; a model that is compiled
    as it runs has none.
    Raises ModelError for a malformed model or a dimension that it does not have,
    UnsupportedOperatorError for what there is no code for.
    """
    options = options or LlvmOptions()
    model = bind_dimensions(model, dims)
    signatures = input_signatures(model)
    if any(None in each.shape for each in signatures):
        return _specialising(model, signatures, options)
    try:
        graph = _imported(model, signatures)
    except NeedsValueError:
        return _specialising(model, signatures, options)
    trace.step("import", lambda: to_text(graph))
    if passes:
        graph = Pipeline(passes, trace.observers).run(graph)
        verify(graph)
    return compile_graph(graph, float_passes(options.winograd, options.records), trace, options)


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
        model = onnx.load_model_from_string(bytes(part.model))
    except Exception as error:
        # The reader raises classes of its own.
        raise ModuleError(f"the module's model cannot be read: {error}") from None
    verify = CompileOptions.from_environment().verify
    options = LlvmOptions.of(cpu, cache=cache_directory(), records=records, verify=verify)
    return Executor(model, options)


def is_integer(model: onnx.ModelProto) -> bool:
    """Whether a model can be imported as a graph of integer operators."""
    if not any(node.op_type in QUANTIZED_OPERATORS for node in model.graph.node):
        return False
    try:
        import_onnx(model)
    except CompilerError:
        return False
    return True


def prepared_graph(
    model: onnx.ModelProto, dims: Mapping[str, int], winograd: bool = True
) -> tuple[Graph, Pipeline[Graph]]:
    """The graph of a model for CPUs, and the passes it goes through.

    winograd: as of ``float_passes``.

    Raises ModelError for a model whose shapes stay open.
    """
    if not dims and is_integer(model):
        return simplify(import_onnx(model), ()), EXACT_PASSES
    bound = bind_dimensions(model, dims)
    signatures = input_signatures(bound)
    for each in signatures:
        if None in each.shape:
            sizes = ["any" if size is None else size for size in each.shape]
            raise ModelError(f"input {each.name!r} has shape {sizes}; bind its sizes (--dim)")
    return _imported(bound, signatures), float_passes(winograd)


def signature_of(model: onnx.ModelProto, dims: Mapping[str, int]) -> tuple[TensorSignature, ...]:
    """The inputs of the graph that ``prepared_graph`` gives."""
    graph, _ = prepared_graph(model, dims)
    return tuple(
        TensorSignature(name, graph.types[name].shape, str(graph.types[name].dtype))
        for name in graph.inputs
    )


def _imported(model: onnx.ModelProto, signatures: tuple[InputSignature, ...]) -> Graph:
    builder = GraphBuilder()
    values = {}
    for each in signatures:
        kind = TensorType(tuple(size or 0 for size in each.shape), each.dtype)
        values[each.name] = Tensor(builder.input(each.name, kind), kind)
    outputs = import_model(model, values, builder)
    for name, value in outputs:
        if not isinstance(value, Tensor) or value.narrow is not None:
            raise UnsupportedOperatorError(f"output {name!r} is no tensor of numbers")
    names = []
    exported: dict[str, str] = {}
    for name, value in outputs:
        assert isinstance(value, Tensor)
        if value.name in builder.constants:
            names.append(builder.constant(name, builder.constants[value.name]))
        else:
            names.append(builder.export(exported.get(value.name, value.name), name))
            exported[value.name] = name
    found = slice_graph(builder, names)
    return Graph(
        tuple(each.name for each in signatures), found.outputs, found.nodes, found.constants,
        {**found.types, **{each.name: builder.types[each.name] for each in signatures}},
    )  # fmt: skip


def _specialising(
    model: onnx.ModelProto, signatures: tuple[InputSignature, ...], options: LlvmOptions
) -> Module:
    outputs = []
    for value in model.graph.output:
        tensor = value.type.tensor_type
        if not value.type.HasField("tensor_type"):
            raise UnsupportedOperatorError(f"output {value.name!r} is no tensor")
        shape = tuple(dim.dim_value or -1 for dim in tensor.shape.dim)
        try:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        except KeyError:
            found = type_name(tensor.elem_type)
            raise ModelError(f"output {value.name!r} has elements of type {found}") from None
        outputs.append(TensorSignature(value.name, shape, str(dtype)))
    inputs = tuple(
        TensorSignature(each.name, tuple(-1 if n is None else n for n in each.shape), each.dtype)
        for each in signatures
    )
    part = ModelPart(
        inputs,
        tuple(outputs),
        model.SerializeToString(),
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
