"""From model to module, top to bottom."""

from collections.abc import Mapping
from dataclasses import astuple

from dovetail.isa.config import HardwareConfig
from dovetail.runtime.module import Module, Placement
from dovetail.runtime.tensors import TensorSignature

from .errors import ModelError
from .front.table import open_model
from .front.torch.live import exported
from .graph.replicate import batched_type
from .graph.text import to_text
from .options import CompileOptions
from .pipeline.limits import Budget, Watch
from .pipeline.trace import Trace
from .targets.table import HOST, find_target
from .targets.target import Target

__all__ = ["compile_model"]


def compile_model(
    model: object,
    target: str | HardwareConfig | Target | tuple[object, ...] = "vta",
    options: CompileOptions | None = None,
    dims: Mapping[str, int] | None = None,
) -> Module:
    """Compile a model: what the target can run of it for the target, the rest for the CPU.

    model: the path of a file, the object that its format's library has for a model
    (``onnx.ModelProto``), or what a front end has read.
    target: ``vta``, ``vta:CONFIG``, ``cpu``, an accelerator's configuration, or your own
    target; or the inputs of a ``torch.nn.Module``, which is exported with them, for ``cpu``.
    dims: sizes of symbolic dimensions, for targets that have open ones.
    Raises the kinds of CompilerError: ModelError, UnsupportedOperatorError, TargetError,
    DoesNotFitError, CompileLimitError.
    """
    if isinstance(target, tuple):
        model, target = exported(model, target), HOST
    chosen, dims = find_target(target), dims or {}
    options = options or CompileOptions.from_environment()
    watch = Watch(options.limits, options.look)
    trace, source = Trace(options, watch), open_model(model, Budget(watch))
    imported = chosen.load(source, dims)
    if options.batch > 1 and (imported is None or imported.rest is not None):
        raise ModelError(
            f"a batch of {options.batch} of a model with open sizes, or shapes that depend on "
            "data; required fixed shapes; give its own batch dimension a size, or leave it open"
        )
    if imported is None:
        part = chosen.compile_open(source, dims, options)
        trace.end()
        return Module.of_part(part)
    trace.step("import", lambda: to_text(imported.graph))
    plan = chosen.plan(imported)
    if plan.placements:
        lines = [f"{each.where} {each.node}: {each.reason}" for each in plan.placements]
        trace.step("partition", lambda: "\n".join(lines))
    parts = []
    for piece in plan.pieces:
        compiler = chosen if piece.own else find_target(HOST)
        parts.append(compiler.compile(piece, imported.kinds, options, trace))
    if imported.rest is not None:
        parts.append(find_target(HOST).compile_open(imported.rest, {}, options))
    trace.end()
    signatures = {
        name: TensorSignature(name, kind.shape, str(kind.dtype))
        for name in imported.graph.inputs
        for kind in [batched_type(name, imported.graph.types[name], options.batch)]
    }
    signatures |= {
        tensor.name: tensor for each in parts for tensor in (*each.inputs, *each.outputs)
    }
    return Module(
        chosen.name,
        tuple(signatures[name] for name in imported.graph.inputs),
        tuple(signatures[name] for name in imported.outputs or imported.graph.outputs),
        tuple(parts),
        tuple(Placement(*astuple(each)) for each in plan.placements),
    )
