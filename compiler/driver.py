"""From model to module, top to bottom."""

from collections.abc import Mapping
from dataclasses import astuple
from functools import partial
from pathlib import Path

import onnx

from dovetail.isa.cache import cache_directory
from dovetail.isa.config import HardwareConfig
from dovetail.runtime.module import Module, Placement
from dovetail.vta_sim.timing import time_program

from .errors import ModelError, UnsupportedOperatorError
from .front.onnx.integer.onnx import import_onnx, load_onnx
from .front.onnx.integer.onnx_nodes import CONVERTERS
from .front.onnx.partition import Part, cut_model, model_inputs
from .graph.passes.simplify import simplify
from .graph.text import to_text
from .graph.verify import verify
from .options import CompileOptions
from .pipeline.passes import Pipeline
from .pipeline.trace import Trace
from .targets.cpu.llvm.build import LlvmOptions
from .targets.cpu.llvm.target import CpuTarget
from .targets.cpu.native import compile_graph, compile_native, is_integer
from .targets.cpu.segment import EXACT_PASSES
from .targets.record_files import read_records
from .targets.target import Target, parse_target
from .targets.vta.accelerate import compile_accelerated, require_acceleratable

__all__ = ["compile_model"]


def compile_model(
    model: Path | str | onnx.ModelProto,
    target: str | HardwareConfig = "vta",
    options: CompileOptions | None = None,
    dims: Mapping[str, int] | None = None,
) -> Module:
    """Compile an ONNX model; for the accelerator one that is quantised, as far as it shall run
    there: the CPU runs what comes before and after.

    target: ``vta``, ``vta:CONFIG``, ``cpu``, or an accelerator's configuration.
    dims: sizes of symbolic dimensions, for ``cpu``.
    Raises the kinds of CompilerError: ModelError, UnsupportedOperatorError, TargetError,
    DoesNotFitError.
    """
    chosen = parse_target(target)
    options = options or CompileOptions.from_environment()
    trace = Trace(options)
    if isinstance(model, str | Path):
        model = load_onnx(Path(model))
    if chosen.config is None:
        module = _for_cpu(model, dims or {}, options, trace)
    elif dims:
        raise ModelError(f"dimensions {sorted(dims)} are bound; only target cpu has open ones")
    else:
        module = _for_accelerator(model, chosen, chosen.config, options, trace)
    trace.end()
    return module


def _for_cpu(
    model: onnx.ModelProto, dims: Mapping[str, int], options: CompileOptions, trace: Trace
) -> Module:
    cpu = CpuTarget.at_level(options.cpu.level).cpu
    machine = LlvmOptions.of(
        options.cpu,
        cache=cache_directory(),
        records=read_records(options.records, cpu, options.cpu.threads),
        verify=options.verify,
    )
    if dims or not is_integer(model):
        return compile_native(model, dims, trace, machine, options.passes)
    imported = import_onnx(model)
    trace.step("import", lambda: to_text(imported))
    verify(imported)
    graph = simplify(imported, trace.observers)
    graph = Pipeline(options.passes, trace.observers).run(graph)
    verify(graph)
    return compile_graph(graph, EXACT_PASSES, trace, machine)


def _for_accelerator(
    model: onnx.ModelProto,
    target: Target,
    config: HardwareConfig,
    options: CompileOptions,
    trace: Trace,
) -> Module:
    """All of the model, or else, with the CPU, the parts of it."""
    try:
        return compile_accelerated(model, target, config, options, trace, time_program)
    except (ModelError, UnsupportedOperatorError) as problem:
        suits = partial(require_acceleratable, lanes=config.block)
        found = cut_model(model, frozenset(CONVERTERS), suits)
        if found is None:
            raise problem from None
    parts, placements = found
    trace.step(
        "partition", lambda: "\n".join(f"{p.where} {p.node}: {p.reason}" for p in placements)
    )

    def compiled(part: Part) -> Module:
        if part.on_accelerator:
            return compile_accelerated(part.model, target, config, options, trace, time_program)
        return _for_cpu(part.model, {}, options, trace)

    modules = [compiled(part) for part in parts]
    signatures = {
        tensor.name: tensor for each in modules for tensor in (*each.inputs, *each.outputs)
    }
    return Module(
        target.name,
        tuple(signatures[name] for name in model_inputs(model)),
        tuple(signatures[value.name] for value in model.graph.output),
        tuple(part for each in modules for part in each.parts),
        tuple(Placement(*astuple(each)) for each in placements),
    )
