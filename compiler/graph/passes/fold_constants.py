"""Evaluate nodes whose inputs are all constants, unless their results are large, and nodes
whose results have no elements.

    y = f(constant, ...)  ->  constant

All results together have at most ``FOLDED_IN_ALL`` elements and ``MORE`` times those of the
constants before.

Every folding removes a node and none is added, so the pass ends.
"""

from types import MappingProxyType

import numpy as np

from dovetail.isa.frozen import frozen

from ..folding import is_worth_folding
from ..ir import Graph

__all__ = ["FoldConstants"]

FOLDED_IN_ALL, MORE = 1 << 26, 16


@frozen
class FoldConstants:
    """See the module's docstring."""

    name: str = "fold_constants"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when no node is constant."""
        constants, nodes = dict(graph.constants), []
        room = FOLDED_IN_ALL + MORE * sum(each.size for each in constants.values())
        for node in graph.nodes:
            given = [graph.types[name] for name in node.inputs]
            made = [graph.types[name] for name in node.outputs]
            known = all(name in constants for name in node.inputs)
            known = known and is_worth_folding(node.operator, made, given)
            size = sum(each.elements for each in made)
            if size and (not known or size > room):
                nodes.append(node)
                continue
            room -= size
            if size:
                results = node.operator.evaluate([constants[name] for name in node.inputs])
            else:
                results = tuple(np.empty(each.shape, each.dtype.numpy) for each in made)
            for name, result in zip(node.outputs, results, strict=True):
                value = np.array(result)
                value.setflags(write=False)
                constants[name] = value
        if len(nodes) == len(graph.nodes):
            return graph
        return Graph(
            graph.inputs, graph.outputs, tuple(nodes), MappingProxyType(constants), graph.types
        )
