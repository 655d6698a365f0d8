"""What every tensor of a module's accelerator part ought to be: the graph interpreter's values."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import NDArray

from ..errors import ModelError
from ..front.onnx.source import ModelSource, SourceModel
from ..front.source import Imported
from ..graph.interpreter import run as interpret
from ..graph.ir import Graph
from ..graph.partition import plan_parts
from ..options import CompileOptions
from ..pipeline.trace import Trace
from ..targets.cpu.native import prepared
from ..targets.vta.accelerate import prepare_graph, refuse
from ..targets.vta.passes.fuse import Partition, fuse

__all__ = ["Reference", "reference"]

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """The graph that the accelerator runs, its layers, and the value of every tensor."""

    graph: Graph
    partition: Partition
    values: Mapping[str, Array]


def reference(model: ModelSource, inputs: Mapping[str, Array], lanes: int) -> Reference:
    """Interpret ``model``, as far as the end of the accelerator's part, in blocks of ``lanes``.

    Raises ModelError, UnsupportedOperatorError for a model of which no part is for the accelerator,
    GraphError for inputs that are not the model's.
    """
    imported = SourceModel.of(model).to_graph_and_rest(batch=1)
    values = dict(inputs)
    refused = partial(refuse, lanes=lanes)
    for part in plan_parts(imported.graph, imported.kinds, refused).pieces:
        given = {name: values[name] for name in part.graph.inputs if name in values}
        if part.layers is not None:
            graph = prepare_graph(part.layers, Trace(CompileOptions()), lanes=lanes)
            return Reference(graph, fuse(graph), interpret(graph, given))
        graph, _ = prepared(Imported(part.graph, imported.kinds))
        values |= interpret(graph, given)
    raise ModelError("no part of the model is for the accelerator")
