"""A model's results, layer by layer, held against the graph interpreter, on any device."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.runtime.module import Module
from dovetail.runtime.session import run

from ..front.onnx.source import SourceModel
from ..front.source import Imported, Source
from ..front.table import open_model
from ..front.torch.source import TorchModel
from ..graph.interpreter import run as interpret
from ..graph.ir import Graph
from ..options import CompileOptions
from ..pipeline.trace import Trace
from ..targets.cpu.native import prepared
from ..targets.table import find_target
from ..targets.vta.accelerate import accelerate_graph, prepare_graph
from ..targets.vta.capabilities import RUNS_ON_HOST, node_refusals
from ..targets.vta.passes.fuse import fuse
from ..targets.vta.target import Vta
from ..targets.vta.timing import Timing
from .kernels import Difference, ModelCheck, check_graph, check_model, compare

__all__ = ["LayerCheck", "check_layers"]

Array = NDArray[Any]
Arrays = Mapping[str, Array]

TOLERANCE = 1e-4
"""Largest difference of float results, as a part of the tensor's largest value."""


@frozen
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
    model: object, target: str | HardwareConfig, device: str, inputs: Arrays, timing: Timing
) -> Iterator[LayerCheck]:
    """Every layer of ``model``, in order, compiled for ``target`` and run on ``device``.

    On the accelerator all are outputs of one program, so a wrong layer makes those after it wrong
    as well; except for tensors that one layer alone may read, as softmax's scores, which it
    overwrites.  Outputs of the model are those of its own program.  On the CPU each kernel runs on
    what the interpreter gives for its operands.
    inputs: of the model; symbolic dimensions are theirs.
    timing: tells the compiler when instructions start and end.
    Raises ModelError for a model with a shape that depends on a value, and what compiling raises.
    """
    chosen = find_target(target)
    if not isinstance(chosen, Vta):
        yield from _check_cpu(open_model(model), inputs)
        return
    imported = open_model(model).to_graph(batch=1)
    values = dict(inputs)
    for part in chosen.plan(imported).pieces:
        given = {name: values[name] for name in part.graph.inputs}
        if part.own:
            yield from _check_accelerated(part.graph, chosen.config, device, given, timing)
        else:
            graph, passes = prepared(Imported(part.graph, imported.kinds))
            yield from _layer_checks(check_graph(graph, passes, given))
        values |= interpret(part.graph, given)


def _check_cpu(model: Source, inputs: Arrays) -> Iterator[LayerCheck]:
    dims = model.dimensions(inputs) if isinstance(model, SourceModel | TorchModel) else {}
    return _layer_checks(check_model(model, inputs, dims))


def _layer_checks(done: ModelCheck) -> Iterator[LayerCheck]:
    for each in (*done.kernels, *done.outputs):
        yield LayerCheck(", ".join(each.origins) or f"output {each.tensor}", "cpu", each)


def _check_accelerated(
    layers: Graph, config: HardwareConfig, device: str, inputs: Arrays, timing: Timing
) -> Iterator[LayerCheck]:
    """A program that gives what each layer makes, and the one that gives the outputs alone."""
    options = CompileOptions()
    trace = Trace(options)
    graph = prepare_graph(layers, trace, config.block, act_words=config.act_depth)
    expected = interpret(graph, inputs)
    names = {layer.output: layer.name for layer in fuse(graph).layers}
    inner = _shown(graph, tuple(name for name in names if name not in graph.outputs), config)
    for outputs in filter(None, (inner, graph.outputs)):
        part = accelerate_graph(replace(graph, outputs=outputs), config, options, trace, timing)
        given = {each.name: inputs[each.name] for each in part.inputs}
        for name, found in run(Module.of_part(part), given, device).outputs.items():
            layer = names.get(name, f"output {name}")
            yield LayerCheck(layer, device, compare(name, (layer,), found, expected[name]))


def _shown(graph: Graph, names: tuple[str, ...], config: HardwareConfig) -> tuple[str, ...]:
    """The tensors among ``names`` that may be outputs without a layer being refused."""
    while True:
        refused = node_refusals(replace(graph, outputs=names), config.block)
        read = {
            name
            for number, refusal in refused.items()
            if refusal.reason != RUNS_ON_HOST
            for name in graph.nodes[number].inputs
        }
        kept = tuple(name for name in names if name not in read)
        if kept == names:
            return names
        names = kept
