"""The part of a graph under construction that some tensors depend on."""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from .ir import Graph, GraphBuilder
from .passes.eliminate_dead import EliminateDead

__all__ = ["slice_graph"]


def slice_graph(builder: GraphBuilder, outputs: Sequence[str]) -> Graph:
    """The graph of ``outputs``, with the inputs and constants that it reads."""
    graph = EliminateDead().run(builder.build(tuple(dict.fromkeys(outputs))))
    read = {*graph.outputs, *(name for node in graph.nodes for name in node.inputs)}
    unread = {name for name in graph.inputs if name not in read}
    types = {name: kind for name, kind in graph.types.items() if name not in unread}
    inputs = tuple(name for name in graph.inputs if name in read)
    return replace(graph, inputs=inputs, types=MappingProxyType(types))
