"""Expected values of every tensor of a module's accelerator part, from the graph interpreter."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen

from ..errors import ModelError
from ..front.table import open_model
from ..graph.interpreter import run as interpret
from ..graph.ir import Graph
from ..options import CompileOptions
from ..pipeline.trace import Trace
from ..targets.vta.accelerate import prepare_graph
from ..targets.vta.passes.fuse import Layer, Partition, fuse
from ..targets.vta.target import Vta

__all__ = ["Reference", "reference"]

Array = NDArray[Any]


@frozen
class Reference:
    """The graph that the accelerator runs, its layers, and the value of every tensor."""

    graph: Graph
    partition: Partition
    values: Mapping[str, Array]

    @property
    def makers(self) -> dict[str, int]:
        """The number of the layer that makes each tensor: an instruction may be part of several."""
        layers = enumerate(self.partition.layers)
        return {node.output: number for number, layer in layers for node in layer.nodes}

    def maker(self, tensor: str) -> Layer:
        """The layer that makes ``tensor``."""
        return self.partition.layers[self.makers[tensor]]


def reference(model: object, inputs: Mapping[str, Array], config: HardwareConfig) -> Reference:
    """Interpret ``model``, as far as the end of the first part of an accelerator of ``config``.

    Raises ModelError, UnsupportedOperatorError for a model without a part for the accelerator,
    GraphError for inputs that are not the model's.
    """
    imported = open_model(model).to_graph_and_rest(batch=1)
    values = dict(inputs)
    for piece in Vta(config).plan(imported).pieces:
        given = {name: values[name] for name in piece.graph.inputs}
        if piece.own:
            trace = Trace(CompileOptions())
            words = config.act_depth
            graph = prepare_graph(piece.graph, trace, config.block, act_words=words)
            return Reference(graph, fuse(graph), interpret(graph, given))
        values |= interpret(piece.graph, given)
    raise ModelError("no part of the model is for the accelerator")
