"""A model made ready to run: compiled for a target, or as graphs that the interpreter evaluates.

``graph`` is what machine code is made of, ``graph:CONFIG`` the layers that an accelerator's planner
gets.  They have neither plan nor code, so many more models meet the importer and all passes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import onnx

from dovetail.compiler import compile
from dovetail.compiler.errors import ModelError
from dovetail.compiler.front.source import NeedsValueError
from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.cpu.native import prepared_graph
from dovetail.compiler.targets.vta.accelerate import prepare_graph
from dovetail.compiler.targets.vta.target import Vta, find_vta
from dovetail.isa.config import HardwareConfig
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import AcceleratorPart

from .running import Array

__all__ = ["Ready", "Target", "make_ready"]

Target = str | HardwareConfig

Outputs = Mapping[str, Array]


@dataclass(frozen=True)
class Ready:
    """compute: the outputs for inputs.  inexact: it says that pairs of a sum's operands give
    another byte.
    """

    compute: Callable[[Mapping[str, Array]], Outputs]
    inexact: bool = False


def make_ready(model: onnx.ModelProto, target: Target) -> Ready:
    """A model for a target.  Raises what compiling raises."""
    kind, _, config = target.partition(":") if isinstance(target, str) else ("", "", "")
    if kind == "graph":
        return Ready(_evaluated(_pieces(model, find_vta(config)) if config else _whole(model)))
    module = compile(model, target)
    device = "cpu" if target == "cpu" else "sim"
    parts = (part.layers for part in module.parts if isinstance(part, AcceleratorPart))
    inexact = any(layer.inexact_pairs for layers in parts for layer in layers)
    return Ready(lambda given: run(module, given, device).outputs, inexact)


def _whole(model: onnx.ModelProto) -> list[Graph]:
    try:
        graph, passes = prepared_graph(open_model(model), {})
    except NeedsValueError as error:
        raise ModelError(f"{error}, and nothing runs before it") from None
    return [passes.run(graph)]


def _pieces(model: onnx.ModelProto, target: Vta) -> list[Graph]:
    """The pieces of a model, in the order they run."""
    lanes, words = target.config.block, target.config.act_depth
    imported = target.load(open_model(model), {})
    if imported.rest is not None:
        raise ModelError("a part of the model has no graph")
    plan = target.plan(imported)
    trace = Trace(CompileOptions())
    return [
        prepare_graph(piece.graph, trace, lanes, act_words=words) if piece.own else piece.graph
        for piece in plan.pieces
    ]


def _evaluated(graphs: list[Graph]) -> Callable[[Mapping[str, Array]], Outputs]:
    def compute(given: Mapping[str, Array]) -> Outputs:
        known = dict(given)
        for graph in graphs:
            known |= interpret(graph, {name: known[name] for name in graph.inputs})
        return known

    return compute
