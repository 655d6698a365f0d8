"""Nodes of a graph, each behind those whose results it reads.

ONNX requires that of a file, but some tools write others, and ONNX Runtime takes them.
"""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

import onnx

from .wellformed import bodies

__all__ = ["in_order"]


def in_order(nodes: Sequence[onnx.NodeProto]) -> Sequence[onnx.NodeProto]:
    """``nodes``, moved only where one reads what a later one makes.

    Nodes that read each other's results stay as they are; reading them tells which they are.
    """
    places = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    reads = [
        {places[name] for name in _names(node) if name in places} - {place}
        for place, node in enumerate(nodes)
    ]
    if all(max(each, default=-1) < place for place, each in enumerate(reads)):
        return nodes
    try:
        return [nodes[place] for place in TopologicalSorter(dict(enumerate(reads))).static_order()]
    except CycleError:
        return nodes


def _names(node: onnx.NodeProto) -> set[str]:
    """Names that a node and its bodies read; those that bodies make themselves among them."""
    found, pending = set(node.input), list(bodies([node]))
    while pending:
        graph = pending.pop()
        found.update(name for each in graph.node for name in each.input)
        found.update(each.name for each in graph.output)
        pending += bodies(graph.node)
    return found
