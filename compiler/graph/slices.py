"""The part of a graph under construction that some tensors depend on."""

from collections.abc import Sequence
from types import MappingProxyType

from .ir import Graph, GraphBuilder

__all__ = ["slice_graph"]


def slice_graph(builder: GraphBuilder, outputs: Sequence[str]) -> Graph:
    """The graph of ``outputs``, with the inputs and constants that it reads."""
    needed = set(outputs)
    nodes = []
    for node in reversed(builder.nodes):
        if needed.intersection(node.outputs):
            needed.update(node.inputs)
            nodes.append(node)
    constants = {name: array for name, array in builder.constants.items() if name in needed}
    inputs = tuple(name for name in builder.inputs if name in needed)
    kept = {*inputs, *constants, *(name for node in nodes for name in node.outputs)}
    types = {name: kind for name, kind in builder.types.items() if name in kept}
    return Graph(
        inputs,
        tuple(dict.fromkeys(outputs)),
        tuple(reversed(nodes)),
        MappingProxyType(constants),
        MappingProxyType(types),
    )
