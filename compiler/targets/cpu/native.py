"""The ``cpu`` target of any model: machine code in the module, or the model to be specialised.

A model whose shapes are fixed, once ``dims`` are bound, becomes machine code.  Others go into the
module as they are: the device compiles them for the shapes and values it is given.
"""

from collections.abc import Mapping

import onnx

from dovetail.isa.cache import cache_directory
from dovetail.runtime.errors import ModuleError
from dovetail.runtime.module import Module, TensorSignature
from dovetail.runtime.native.content import to_content

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
from ...pipeline.passes import Pass, Pipeline
from ...pipeline.trace import Trace
from ...program.ir import Program
from ...schedule.records import from_details, to_details
from .executor.executor import Executor
from .llvm.compile import LlvmOptions, build_program_code
from .llvm.target import CpuTarget
from .segment import EXACT_PASSES, build_program, float_passes

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
    steps, program = build_program(graph, options)
    trace.step("lower", lambda: "\n".join(f"{s.function}: {', '.join(s.origins)}" for s in steps))
    return _module(program, options, [list(step.origins) for step in steps], numbers_only, trace)


def load_specialising(module: Module) -> Executor:
    """What runs a module whose model is compiled as it runs.

    Raises ModuleError when it cannot be read.
    """
    try:
        options = LlvmOptions(
            str(module.details["cpu_level"]),
            module.details["threads"],
            cache=cache_directory(),
            most_work=module.details["most_work"],
            winograd=module.details["winograd"],
            records=from_details(module.details.get("records", {})),
        )
        return Executor(onnx.load_model_from_string(bytes(module.sections["model"])), options)
    except (KeyError, ValueError, TypeError) as error:
        raise ModuleError(f"the module's model cannot be read: {error}") from None


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
    details = {
        "cpu_level": options.level,
        "threads": options.threads,
        "most_work": options.most_work,
        "winograd": options.winograd,
        "records": to_details(options.records),
    }
    return Module("cpu", inputs, tuple(outputs), details, {"model": model.SerializeToString()})


def _module(
    program: Program,
    options: LlvmOptions,
    origins: list[list[str]],
    numbers_only: list[str],
    trace: Trace,
) -> Module:
    code = build_program_code(program, options)
    trace.step("llvm", lambda: f"{len(code.image.code)} bytes")
    target = CpuTarget.at_level(options.level)
    content, sections = to_content(code, list(program.constants.values()), target.cpu, target.flags)
    details = {"kernels": origins, "numbers_only": numbers_only, **content}
    inputs, outputs = (
        tuple(TensorSignature(b.name, b.shape, str(b.dtype)) for b in buffers)
        for buffers in (program.inputs, program.outputs)
    )
    return Module("cpu", inputs, outputs, details, sections)
