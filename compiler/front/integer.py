"""Models that consist of integer layers."""

from ..graph.ir import Graph
from ..graph.passes.integer_layers.recognition import integer_layers
from .source import Source

__all__ = ["integer_graph"]


def integer_graph(model: Source) -> Graph:
    """The graph of a model that consists of integer layers; its open batch is 1.

    A front end that makes integer operators may also make others.

    Raises ModelError, UnsupportedOperatorError for one that does not.
    """
    imported = model.to_graph(batch=1)
    return integer_layers(imported.graph, imported.kinds).require()
