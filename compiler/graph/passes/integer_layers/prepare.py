"""A quantised graph with its integer layers, for targets that compute whole graphs."""

from collections.abc import Mapping

from ....pipeline.trace import Trace
from ...ir import Graph
from ...text import to_text
from ...verify import verify
from ..simplify import simplify
from .recognition import has_integer_layers, is_quantized, recognise

__all__ = ["with_integer_layers"]


def with_integer_layers(graph: Graph, kinds: Mapping[str, str], trace: Trace) -> Graph | None:
    """The graph with all integer layers that there are in it; None where there is none.

    kinds: of the model's nodes, by name.
    """
    if is_quantized(graph) and not has_integer_layers(graph):
        graph = recognise(graph, kinds).graph
    if not has_integer_layers(graph):
        return None
    trace.step("integer_layers", lambda: to_text(graph))
    verify(graph)
    return simplify(graph, trace.observers)
