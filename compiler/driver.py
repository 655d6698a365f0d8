"""From model to module, top to bottom."""

from collections.abc import Mapping
from dataclasses import astuple

from dovetail.isa.cache import cache_directory
from dovetail.isa.config import HardwareConfig
from dovetail.runtime.module import Module, Placement
from dovetail.vta_sim.timing import time_program

from .errors import ModelError
from .front.onnx.source import Imported, ModelSource, SourceModel
from .graph.partition import Part, plan_parts
from .graph.text import to_text
from .options import CompileOptions
from .pipeline.trace import Trace
from .targets.cpu.llvm.build import LlvmOptions
from .targets.cpu.llvm.target import CpuTarget
from .targets.cpu.native import compile_imported, compile_native
from .targets.record_files import read_records
from .targets.target import Target, parse_target
from .targets.vta.accelerate import compile_accelerated, refuse

__all__ = ["compile_model"]


def compile_model(
    model: ModelSource,
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
    source = SourceModel.of(model)
    if chosen.config is None:
        module = compile_native(source, dims or {}, trace, _machine(options), options.passes)
    elif dims:
        raise ModelError(f"dimensions {sorted(dims)} are bound; only target cpu has open ones")
    else:
        module = _for_accelerator(source, chosen, chosen.config, options, trace)
    trace.end()
    return module


def _machine(options: CompileOptions) -> LlvmOptions:
    cpu = CpuTarget.at_level(options.cpu.level).cpu
    return LlvmOptions.of(
        options.cpu,
        cache=cache_directory(),
        records=read_records(options.records, cpu, options.cpu.threads),
        verify=options.verify,
    )


def _for_accelerator(
    model: SourceModel,
    target: Target,
    config: HardwareConfig,
    options: CompileOptions,
    trace: Trace,
) -> Module:
    """All of the model, or else, with the CPU, the parts of it."""
    imported = model.to_graph(batch=1)
    trace.step("import", lambda: to_text(imported.graph))
    plan = plan_parts(imported.graph, imported.kinds, refuse)

    def compiled(part: Part) -> Module:
        if part.layers:
            return compile_accelerated(part.layers, target, config, options, trace, time_program)
        own = Imported(part.graph, imported.kinds)
        return compile_imported(own, trace, _machine(options), options.passes)

    if len(plan.parts) == 1:
        return compiled(plan.parts[0])
    trace.step(
        "partition", lambda: "\n".join(f"{p.where} {p.node}: {p.reason}" for p in plan.placements)
    )
    modules = [compiled(part) for part in plan.parts]
    signatures = {
        tensor.name: tensor for each in modules for tensor in (*each.inputs, *each.outputs)
    }
    return Module(
        target.name,
        tuple(signatures[name] for name in imported.graph.inputs),
        tuple(signatures[name] for name in imported.graph.outputs),
        tuple(part for each in modules for part in each.parts),
        tuple(Placement(*astuple(each)) for each in plan.placements),
    )
