"""Patterns, and the driver that applies them until none matches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..errors import GraphError
from .ir import Graph, GraphBuilder, Node
from .passes.eliminate_dead import EliminateDead

__all__ = ["Pattern", "Rewriter", "rewrite"]

ROUNDS = 1000
"""More rounds than any graph needs; reaching it means a pattern that undoes another."""


@dataclass(frozen=True, slots=True)
class Rewriter:
    """What a pattern sees: the graph as it was before this round, and where new nodes go.

    Nodes that a pattern adds are placed before those that come after the matched one.
    """

    graph: Graph
    builder: GraphBuilder

    def producer(self, name: str) -> Node | None:
        """The node that computes ``name``, if one node reads it and no one else."""
        node = self.graph.producer(name)
        if node is None or name in self.graph.outputs or len(self.graph.consumers(name)) != 1:
            return None
        return node


Pattern = Callable[[Rewriter, Node], str | None]
"""Guards first; then adds nodes to ``builder`` and returns the tensor that replaces the node's
output, or None when the node stays.  The replacement has the type of the output."""


def rewrite(graph: Graph, patterns: Sequence[Pattern]) -> Graph:
    """Apply ``patterns`` to every node, in rounds, until no node changes.

    Nodes that nothing reads any more are removed.  The result is ``graph`` itself when nothing
    matches.  Each pattern says why applying it ends.
    """
    for _ in range(ROUNDS):
        result = _round(graph, patterns)
        if result is None:
            return graph
        graph = EliminateDead().run(result)
    raise GraphError(f"patterns still match after {ROUNDS} rounds; one of them undoes another")


def _round(graph: Graph, patterns: Sequence[Pattern]) -> Graph | None:
    """Rewrite the first node that matches."""
    for place, node in enumerate(graph.nodes):
        builder = GraphBuilder(list(graph.inputs), [], dict(graph.constants), dict(graph.types))
        rewriter = Rewriter(graph, builder)
        for pattern in patterns:
            replacement = pattern(rewriter, node)
            if replacement is not None and _may_replace(graph, builder, node, replacement):
                return _replaced(graph, builder, place, replacement)
    return None


def _may_replace(graph: Graph, builder: GraphBuilder, node: Node, replacement: str) -> bool:
    """A tensor that the graph returns keeps its name, which only a node's output can take."""
    if node.output not in graph.outputs:
        return True
    computed = {each.output for each in (*graph.nodes, *builder.nodes)}
    return replacement in computed and replacement not in graph.outputs


def _replaced(graph: Graph, builder: GraphBuilder, place: int, replacement: str) -> Graph:
    node = graph.nodes[place]
    found, wanted = builder.types[replacement], builder.types.pop(node.output)
    if found != wanted:
        raise GraphError(f"node {node.origin!r}: replaced {wanted} by {found}")
    old, new = node.output, replacement
    if node.output in graph.outputs:
        old, new = replacement, node.output
        builder.types[new] = builder.types.pop(old)
    nodes = (*graph.nodes[:place], *builder.nodes, *graph.nodes[place + 1 :])
    builder.nodes = [_renamed(each, old, new) for each in nodes]
    return builder.build(graph.outputs)


def _renamed(node: Node, old: str, new: str) -> Node:
    inputs = tuple(new if name == old else name for name in node.inputs)
    return replace(node, inputs=inputs, output=new if node.output == old else node.output)
