"""A model's results, layer by layer, held against the graph interpreter, on any device."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import onnx
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.runtime.session import run

from ..errors import ModelError, UnsupportedOperatorError
from ..front.onnx.integer.onnx import import_onnx
from ..front.onnx.integer.onnx_nodes import CONVERTERS
from ..front.onnx.partition import cut_model, model_inputs
from ..graph.interpreter import run as interpret
from ..graph.passes.eliminate_dead import EliminateDead
from ..options import CompileOptions
from ..pipeline.trace import Trace
from ..targets.cpu.native import prepared_graph
from ..targets.target import Target, parse_target
from ..targets.vta.accelerate import accelerate_graph, prepare_graph, require_acceleratable
from ..targets.vta.passes.fuse import fuse
from ..targets.vta.timing import Timing
from .kernels import Difference, check_model, compare

__all__ = ["LayerCheck", "check_layers"]

Array = NDArray[Any]
Arrays = Mapping[str, Array]

TOLERANCE = 1e-4
"""Of float results: of the largest value of the tensor."""


@dataclass(frozen=True, slots=True)
class LayerCheck:
    """One tensor as the device has it, against the interpreter's.

    layer: the model's nodes it comes from.  where: "cpu" or the accelerator's device.
    """

    layer: str
    where: str
    difference: Difference

    @property
    def passes(self) -> bool:
        """Integers are equal, floats close."""
        exact = not self.difference.dtype.startswith(("float", "bfloat"))
        return not self.difference.unequal or (not exact and self.difference.relative <= TOLERANCE)


def check_layers(
    model: onnx.ModelProto, target: str, device: str, inputs: Arrays, timing: Timing
) -> Iterator[LayerCheck]:
    """Every layer of ``model``, in order, compiled for ``target`` and run on ``device``.

    On the accelerator each is the end of a program of its own, on the same inputs of the model, so
    a wrong layer makes those after it wrong as well.  On the CPU each kernel runs on what the
    interpreter gives for its operands.  inputs: of the model; symbolic dimensions are theirs.
    timing: tells the compiler when instructions start and end.
    Raises ModelError for a model with a shape that depends on a value, and what compiling raises.
    """
    chosen = parse_target(target)
    if chosen.config is None:
        yield from _check_cpu(model, inputs)
        return
    suits = partial(require_acceleratable, lanes=chosen.config.block)
    try:
        suits(model)
    except (ModelError, UnsupportedOperatorError) as problem:
        found = cut_model(model, frozenset(CONVERTERS), suits)
        if found is None:
            raise problem from None
    else:
        yield from _check_accelerated(model, chosen, chosen.config, device, inputs, timing)
        return
    values = dict(inputs)
    for part in found[0]:
        given = {name: values[name] for name in model_inputs(part.model)}
        where = target if part.on_accelerator else "cpu"
        yield from check_layers(part.model, where, device, given, timing)
        graph, _ = prepared_graph(part.model, _dimensions(part.model, given))
        values |= interpret(graph, given)


def _check_cpu(model: onnx.ModelProto, inputs: Arrays) -> Iterator[LayerCheck]:
    done = check_model(model, inputs, _dimensions(model, inputs))
    for each in (*done.kernels, *done.outputs):
        yield LayerCheck(", ".join(each.origins) or f"output {each.tensor}", "cpu", each)


def _dimensions(model: onnx.ModelProto, inputs: Arrays) -> dict[str, int]:
    """The sizes of symbolic dimensions, by those of the inputs."""
    sizes = {}
    for value in model.graph.input:
        if value.name in inputs:
            dims = value.type.tensor_type.shape.dim
            for dim, size in zip(dims, inputs[value.name].shape, strict=False):
                if dim.dim_param:
                    sizes[dim.dim_param] = size
    return sizes


def _check_accelerated(
    model: onnx.ModelProto,
    target: Target,
    config: HardwareConfig,
    device: str,
    inputs: Arrays,
    timing: Timing,
) -> Iterator[LayerCheck]:
    """Programs that end after the first layer, the second, and so on; and the whole."""
    options = CompileOptions()
    trace = Trace(options)
    graph = prepare_graph(import_onnx(model), trace, config.block)
    expected = interpret(graph, inputs)
    layers = fuse(graph).layers
    names = {layer.output: layer.name for layer in layers}
    for name in dict.fromkeys((*names, *graph.outputs)):
        shorter = EliminateDead().run(replace(graph, outputs=(name,)))
        module = accelerate_graph(shorter, target, config, options, trace, timing)
        found = run(module, inputs, device).outputs[name]
        layer = names.get(name, f"output {name}")
        yield LayerCheck(layer, device, compare(name, (layer,), found, expected[name]))
