"""Evaluate nodes whose inputs are all constants, unless their results are large.

    y = f(constant, ...)  ->  constant

Every folding removes a node and none is added, so the pass ends.
"""

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from ..emitter import is_worth_folding
from ..ir import Graph

__all__ = ["FoldConstants"]


@dataclass(frozen=True, slots=True)
class FoldConstants:
    """See the module's docstring."""

    name: str = "fold_constants"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when no node is constant."""
        constants, nodes = dict(graph.constants), []
        for node in graph.nodes:
            given = [graph.types[name] for name in node.inputs]
            kept = is_worth_folding([graph.types[name] for name in node.outputs], given)
            if not kept or not all(name in constants for name in node.inputs):
                nodes.append(node)
                continue
            results = node.operator.evaluate([constants[name] for name in node.inputs])
            for name, result in zip(node.outputs, results, strict=True):
                value = np.array(result)
                value.setflags(write=False)
                constants[name] = value
        if len(nodes) == len(graph.nodes):
            return graph
        return Graph(
            graph.inputs, graph.outputs, tuple(nodes), MappingProxyType(constants), graph.types
        )
