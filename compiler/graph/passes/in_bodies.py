"""Passes over the bodies of loops.

Repeat(body)  ->  Repeat(passes(body))
"""

from dataclasses import replace

from dovetail.isa.frozen import frozen

from ...pipeline.passes import Pass
from ..ir import Graph, Node
from ..operators.repetition import Repeat

__all__ = ["InBodies"]


@frozen
class InBodies:
    """``passes`` over the body of every ``Repeat``, and over those inside it."""

    passes: tuple[Pass[Graph], ...]
    name: str = "in_bodies"

    def run(self, graph: Graph) -> Graph:
        """The graph with other bodies; ``graph`` itself when there are none."""
        if not any(isinstance(node.operator, Repeat) for node in graph.nodes):
            return graph
        return replace(graph, nodes=tuple(map(self._node, graph.nodes)))

    def _node(self, node: Node) -> Node:
        if not isinstance(node.operator, Repeat):
            return node
        body = node.operator.body
        for each in self.passes:
            body = each.run(body)
        return replace(node, operator=replace(node.operator, body=self.run(body)))
