"""From model to module, top to bottom."""

from collections.abc import Mapping
from pathlib import Path

import onnx

from dovetail.isa.config import INSTRUCTION_BYTES, HardwareConfig
from dovetail.isa.footprint import dram_rows
from dovetail.isa.instructions import Load, Store
from dovetail.runtime.module import Module, TensorSignature
from dovetail.runtime.profile.layers import share_cycles
from dovetail.runtime.result import Timeline, TimelineEntry

from .backends.llvm.build import LlvmOptions
from .backends.vta.emit import CompiledProgram, compile_partition
from .errors import CompilerError, ModelError
from .graph.dense_to_conv import DenseToConv
from .graph.eliminate_dead import EliminateDead
from .graph.fuse import Partition, fuse
from .graph.ir import Graph
from .graph.own_parts import OwnParts
from .graph.simplify import simplify
from .graph.text import to_text
from .graph.verify import verify
from .host_steps import host_steps
from .importers.onnx import import_onnx, load_onnx
from .importers.onnx_nodes import QUANTIZED_OPERATORS
from .native import compile_graph, compile_native
from .options import CompileOptions, cache_directory
from .passes import Pipeline
from .segment import EXACT_PASSES
from .target import Target, parse_target
from .tensor.lower import Activation
from .trace import Trace

__all__ = ["compile_model"]

FOR_ACCELERATOR = (DenseToConv(), OwnParts(), EliminateDead())
"""Passes that only graphs for the accelerator go through."""


def compile_model(
    model: Path | str | onnx.ModelProto,
    target: str = "vta",
    options: CompileOptions | None = None,
    dims: Mapping[str, int] | None = None,
) -> Module:
    """Compile an ONNX model; for the accelerator an integer one.

    target: ``vta``, ``vta:CONFIG`` or ``cpu``.  dims: sizes of symbolic dimensions, for ``cpu``.
    Raises the kinds of CompilerError: ModelError, UnsupportedOperatorError, TargetError,
    DoesNotFitError.
    """
    chosen = parse_target(target)
    options = options or CompileOptions.from_environment()
    trace = Trace(options)
    machine = LlvmOptions(options.cpu_level, options.threads, cache=cache_directory())
    if isinstance(model, str | Path):
        model = load_onnx(Path(model))

    if chosen.config is None and (dims or not _is_integer(model)):
        module = compile_native(model, dims or {}, trace, machine)
        trace.end()
        return module
    if dims:
        raise ModelError(f"dimensions {sorted(dims)} are bound; only target cpu has open ones")
    imported = import_onnx(model)
    trace.step("import", lambda: to_text(imported))
    verify(imported)
    graph = simplify(imported, trace.observers)
    if chosen.config is None:
        verify(graph)
        module = compile_graph(graph, EXACT_PASSES, trace, machine)
        trace.end()
        return module

    graph = Pipeline(FOR_ACCELERATOR, trace.observers).run(graph)
    verify(graph)
    trace.start()
    partition = fuse(graph)
    trace.step("fuse", lambda: _partition_text(partition))
    program = compile_partition(graph, partition, chosen.config, trace.step, options.overlap)
    trace.end()
    return _accelerator_module(graph, partition, program, chosen, chosen.config)


def _is_integer(model: onnx.ModelProto) -> bool:
    """Whether the graph interpreter has all the model's operators, in integers."""
    if not any(node.op_type in QUANTIZED_OPERATORS for node in model.graph.node):
        return False
    try:
        import_onnx(model)
    except CompilerError:
        return False
    return True


def _partition_text(partition: Partition) -> str:
    """What runs where, one line a node of the host or a layer of the accelerator."""
    host = [
        [f"host {node.origin}: {node.operator}" for node in nodes]
        for nodes in (partition.prefix, partition.suffix)
    ]
    layers = [
        f"layer {number} {layer.name}: {' + '.join(type(n.operator).__name__ for n in layer.nodes)}"
        for number, layer in enumerate(partition.layers)
    ]
    return "\n".join([*host[0], *layers, *host[1]])


def _signatures(graph: Graph, names: tuple[str, ...]) -> tuple[TensorSignature, ...]:
    return tuple(
        TensorSignature(name, graph.types[name].shape, graph.types[name].dtype) for name in names
    )


def _accelerator_module(
    graph: Graph,
    partition: Partition,
    program: CompiledProgram,
    target: Target,
    config: HardwareConfig,
) -> Module:
    result = program.result
    suffix_input = partition.result
    last = [n for n in partition.suffix if n.inputs[0] in partition.aliases]
    if last:
        raise ModelError(f"node {last[0].origin!r} reads a tensor that is an alias")
    details = {
        "config": config.name,
        "fingerprint": config.fingerprint,
        "program_address": program.program_address,
        "program_bytes": len(program.instructions) * INSTRUCTION_BYTES,
        "input_address": program.input_address,
        "input_image": _image_layout(program.source),
        "output_address": program.output_address,
        "output_blocked_shape": [result.blocks, result.height, result.width, config.block],
        "output_shape": list(graph.types[partition.result].shape),
        "prefix": host_steps(partition.prefix, graph.inputs[0]),
        "suffix": host_steps(partition.suffix, suffix_input),
        "layers": _layers(partition, program, config),
        "layer_of": list(program.layer_of),
        "expected_cycles": program.expected_cycles,
    }
    return Module(
        target.name,
        _signatures(graph, graph.inputs),
        _signatures(graph, graph.outputs),
        details,
        {"dram": program.image},
    )


def _image_layout(source: Activation) -> dict[str, object] | None:
    """How the host puts an image into DRAM; None for a tensor in blocks."""
    if source.image is None:
        return None
    return {"pitch": source.image.pitch, "transposed": source.image.transposed}


def _layers(
    partition: Partition, program: CompiledProgram, config: HardwareConfig
) -> list[dict[str, object]]:
    """For each layer what ``profile`` shows: name, operators, MACs, DRAM bytes, schedule."""
    moved = [0] * len(partition.layers)
    for instruction, layer in zip(program.instructions, program.layer_of, strict=True):
        if isinstance(instruction, Load | Store):
            moved[layer] += sum(size for _, size in dram_rows(instruction, config))
    expected = share_cycles(_timeline(program), len(partition.layers), program.expected_cycles)
    return [
        {
            "name": layer.name,
            "kind": "+".join(type(node.operator).__name__ for node in layer.nodes),
            "macs": lowered.kernel.macs,
            "dram_bytes": count,
            "expected_cycles": cycles,
            "inexact_pairs": lowered.inexact_pairs,
            "schedule": schedule.record,
        }
        for layer, lowered, schedule, count, cycles in zip(
            partition.layers, program.layers, program.schedules, moved, expected, strict=True
        )
    ]


def _timeline(program: CompiledProgram) -> Timeline:
    """What the program is expected to do when."""
    parts = zip(program.instructions, program.layer_of, program.expected, strict=True)
    return tuple(
        TimelineEntry(index, instruction.unit.name, layer, start, start, end, None, None, 0)
        for index, (instruction, layer, (start, end)) in enumerate(parts)
    )
