"""What every tensor of a module's accelerator part ought to be: the graph interpreter's values."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import onnx
from numpy.typing import NDArray

from ..errors import ModelError, UnsupportedOperatorError
from ..front.onnx.integer.onnx import import_onnx
from ..front.onnx.integer.onnx_nodes import CONVERTERS
from ..front.onnx.partition import cut_model, model_inputs
from ..graph.interpreter import run as interpret
from ..graph.ir import Graph
from ..options import CompileOptions
from ..pipeline.trace import Trace
from ..targets.cpu.native import prepared_graph
from ..targets.vta.accelerate import prepare_graph, require_acceleratable
from ..targets.vta.passes.fuse import Partition, fuse

__all__ = ["Reference", "reference"]

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """The graph that the accelerator runs, its layers, and the value of every tensor."""

    graph: Graph
    partition: Partition
    values: Mapping[str, Array]


def reference(model: onnx.ModelProto, inputs: Mapping[str, Array], lanes: int) -> Reference:
    """Interpret ``model``, as far as the end of the accelerator's part, in blocks of ``lanes``.

    Raises ModelError, UnsupportedOperatorError for a model of which no part is for the accelerator,
    GraphError for inputs that are not the model's.
    """
    suits = partial(require_acceleratable, lanes=lanes)
    try:
        suits(model)
    except (ModelError, UnsupportedOperatorError) as problem:
        found = cut_model(model, frozenset(CONVERTERS), suits)
        if found is None:
            raise problem from None
    else:
        return _interpreted(model, inputs, lanes)
    values = dict(inputs)
    for part in found[0]:
        given = {name: values[name] for name in model_inputs(part.model)}
        if part.on_accelerator:
            return _interpreted(part.model, given, lanes)
        graph, _ = prepared_graph(part.model, {})
        values |= interpret(graph, given)
    raise ModelError("no part of the model is for the accelerator")


def _interpreted(model: onnx.ModelProto, inputs: Mapping[str, Array], lanes: int) -> Reference:
    graph = prepare_graph(import_onnx(model), Trace(CompileOptions()), lanes=lanes)
    return Reference(graph, fuse(graph), interpret(graph, inputs))
