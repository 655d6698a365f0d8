"""Patterns, and the driver that applies them until none matches."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace

from dovetail.isa.frozen import frozen

from ..errors import GraphError
from .ir import Graph, GraphBuilder, Node
from .passes.eliminate_dead import EliminateDead
from .slices import needed

__all__ = ["Pattern", "Rewriter", "Rewriting", "rewrite"]

ROUNDS = 1000
"""More rounds than any graph needs; reaching it means a pattern that undoes another."""

REACH = 3
"""Nodes that a pattern looks back at, one before the other, if it does not say."""


@frozen
class Rewriter:
    """The graph as a pattern sees it, before this round, and a place for new nodes.

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
"""Is given nodes that have inputs.  Guards first; then adds nodes to ``builder`` and returns the
tensor that replaces the node's output, or None when the node stays.  The replacement has the type
of the output."""


@frozen
class Rewriting:
    """A pass of patterns alone; the result is the graph itself when nothing matches."""

    name: str
    patterns: tuple[Pattern, ...]

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph."""
        return rewrite(graph, self.patterns)


def rewrite(graph: Graph, patterns: Sequence[Pattern], reach: int = REACH) -> Graph:
    """Apply ``patterns`` to every node, in rounds, until no node changes.

    reach: nodes that a pattern looks back at, one before the other.  A round leaves a node alone if
    it has rewritten one of those; 0 where what is rewritten does not change what others see.  Later
    rounds try only nodes near what was rewritten, until none of these matches.

    Nodes that nothing reads any more are removed.  The result is ``graph`` itself when nothing
    matches.  Each pattern says why applying it ends.
    """
    worth: Container[str] | None = None
    for _ in range(ROUNDS):
        result = _round(graph, patterns, reach, worth)
        if result is not None:
            graph, changed = result
            worth = _around(graph, changed, reach)
        elif worth is None:
            return graph
        else:
            # Patterns may look further than they say.
            worth = None
    raise GraphError(f"patterns still match after {ROUNDS} rounds; one of them undoes another")


def _round(
    graph: Graph, patterns: Sequence[Pattern], reach: int, worth: Container[str] | None
) -> tuple[Graph, set[str]] | None:
    """Rewrite what matches, except for what is near a node that this round rewrote before; and the
    tensors that are new or gone.

    worth: outputs of the nodes that are tried; None for all.
    """
    builder = GraphBuilder.over(graph)
    rewriter, outputs = Rewriter(graph, builder), set(graph.outputs)
    nodes: list[Node] = []
    names: dict[str, str] = {}
    changed: set[str] = set()
    for node in graph.nodes:
        found = None
        if worth is None or node.output in worth:
            beside = changed and not changed.isdisjoint(_near(graph, node, reach))
            found = None if beside else _match(rewriter, patterns, node, names)
        if found is None:
            nodes.append(node)
            continue
        own, builder.nodes = builder.nodes, []
        nodes += own
        changed |= {*node.outputs, found, *(name for each in own for name in each.outputs)}
        old, new = (found, node.output) if node.output in outputs else (node.output, found)
        names[old] = new
    if not names:
        return None
    for old, new in names.items():
        builder.types[new] = builder.types.pop(old)
    kept, _ = needed([_renamed(each, names) for each in nodes], graph.outputs)
    builder.nodes = list(kept)
    return EliminateDead().run(builder.build(graph.outputs)), changed


def _around(graph: Graph, changed: set[str], reach: int) -> set[str]:
    """Outputs of the nodes that may look at one of the tensors ``changed``, or at what reads it."""
    found = set(changed)
    for _ in range(reach):
        edge = {name for each in found if (made := graph.producer(each)) for name in made.inputs}
        found |= edge - graph.constants.keys()
    for _ in range(reach + 1):
        found |= {name for each in found for node in graph.consumers(each) for name in node.outputs}
    return found


def _match(
    rewriter: Rewriter, patterns: Sequence[Pattern], node: Node, replaced: Container[str]
) -> str | None:
    """The replacement of the node by the first pattern that matches; its nodes are in the builder.

    replaced: tensors in whose place this round has put others, which a later round may take.
    """
    builder = rewriter.builder
    for pattern in patterns if node.inputs else ():
        found = pattern(rewriter, node)
        if found is not None and found not in replaced and _may_replace(rewriter, node, found):
            wanted, given = rewriter.graph.types[node.output], builder.types[found]
            if wanted != given:
                raise GraphError(f"node {node.origin!r}: replaced {wanted} by {given}")
            return found
        for name in (name for each in builder.nodes for name in each.outputs):
            del builder.types[name]
        builder.nodes = []
    return None


def _may_replace(rewriter: Rewriter, node: Node, replacement: str) -> bool:
    """A tensor that the graph returns keeps its name, which only a node's output can take."""
    graph = rewriter.graph
    if node.output not in graph.outputs:
        return True
    added = (name for each in rewriter.builder.nodes for name in each.outputs)
    computed = graph.producer(replacement) is not None or replacement in added
    return computed and replacement not in graph.outputs


def _near(graph: Graph, node: Node, reach: int) -> set[str]:
    """The tensors that patterns may look at: the node's, and those of the nodes before it."""
    found, edge = set(node.outputs), [node]
    for _ in range(reach):
        found.update(name for each in edge for name in each.inputs if name not in graph.constants)
        edge = [made for each in edge for n in each.inputs if (made := graph.producer(n))]
    return found


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    if names.keys().isdisjoint((*node.inputs, *node.outputs)):
        return node
    inputs, (first, *more) = (
        tuple(names.get(name, name) for name in given) for given in (node.inputs, node.outputs)
    )
    return replace(node, inputs=inputs, output=first, extra_outputs=tuple(more))
