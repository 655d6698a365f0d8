"""Remove nodes and constants that no output needs."""

from types import MappingProxyType

from dovetail.isa.frozen import frozen

from ..ir import Graph
from ..slices import needed

__all__ = ["EliminateDead"]


@frozen
class EliminateDead:
    """Inputs stay, read or not: they are the model's interface."""

    name: str = "eliminate_dead"

    def run(self, graph: Graph) -> Graph:
        """The graph without them; ``graph`` itself when there are none."""
        nodes, names = needed(graph.nodes, graph.outputs)
        constants = {name: array for name, array in graph.constants.items() if name in names}
        if len(nodes) == len(graph.nodes) and len(constants) == len(graph.constants):
            return graph
        kept = {*graph.inputs, *constants, *(name for node in nodes for name in node.outputs)}
        types = {name: kind for name, kind in graph.types.items() if name in kept}
        return Graph(
            graph.inputs, graph.outputs, nodes, MappingProxyType(constants), MappingProxyType(types)
        )
