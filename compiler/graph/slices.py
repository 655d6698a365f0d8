"""The part of a graph, or of one under construction, that some tensors depend on."""

from collections.abc import Iterable, Sequence
from types import MappingProxyType

from .ir import Graph, GraphBuilder, Node

__all__ = ["needed", "slice_graph"]


def needed(nodes: Sequence[Node], outputs: Iterable[str]) -> tuple[tuple[Node, ...], set[str]]:
    """The nodes that ``outputs`` depend on, in order; ``outputs`` and all that these nodes read."""
    names, found = set(outputs), []
    for node in reversed(nodes):
        if names.intersection(node.outputs):
            names.update(node.inputs)
            found.append(node)
    return tuple(reversed(found)), names


def slice_graph(builder: GraphBuilder, outputs: Sequence[str]) -> Graph:
    """The graph of ``outputs``, with the inputs and constants that it reads."""
    nodes, names = needed(builder.nodes, outputs)
    constants = {name: array for name, array in builder.constants.items() if name in names}
    inputs = tuple(name for name in builder.inputs if name in names)
    kept = {*inputs, *constants, *(name for node in nodes for name in node.outputs)}
    types = {name: kind for name, kind in builder.types.items() if name in kept}
    unique = tuple(dict.fromkeys(outputs))
    return Graph(inputs, unique, nodes, MappingProxyType(constants), MappingProxyType(types))
