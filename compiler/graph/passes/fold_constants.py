"""Evaluate nodes whose inputs are all constants.

    y = f(constant, ...)  ->  constant

Every folding removes a node and none is added, so the pass ends.
"""

from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

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
            if not all(name in constants for name in node.inputs):
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
