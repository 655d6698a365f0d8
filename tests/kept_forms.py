"""Forms that graphs take: how many operators of each kind, kept in JSON beside the tests.

Whatever form it takes, a graph has the right values; that another one was chosen, as a product in
place of a pool, is seen here alone.
"""

from collections import Counter

from dovetail.compiler.graph.ir import Graph

__all__ = ["form"]


def form(graph: Graph) -> str:
    """Kinds of the graph's operators, each with its count."""
    counts = Counter(type(node.operator).__name__ for node in graph.nodes)
    return ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items())) or "nothing"
