"""Limits of what is looked up: rows at both ends of a table that hold the same are not read.

    Requantize(x, low, high), Lookup(table)  ->  Requantize(x, low', high'), Lookup(table)

``table`` holds one byte from ``low`` to ``low'``, and one from ``high'`` to ``high``; so no byte
changes, and LOAD need not bring the rows outside the limits.  The pass is over after one turn.
"""

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen, replace

from ....graph.ir import Graph, Node
from ....graph.operators.integer.residual import RequantizeAdd
from ....graph.operators.integer.values import Lookup
from ..operators import AnyAdd, AnyMultiply, AnyRequantize

__all__ = ["NarrowLimits"]

LEAST = -128


@frozen
class NarrowLimits:
    """Gives limits to tensors to which only one table is applied."""

    name: str = "narrow_limits"

    def run(self, graph: Graph) -> Graph:
        """The graph with other limits; ``graph`` itself when all are narrow."""
        nodes = tuple(_narrowed(graph, node) for node in graph.nodes)
        return graph if nodes == graph.nodes else replace(graph, nodes=nodes)


def _narrowed(graph: Graph, node: Node) -> Node:
    operator = node.operator
    if not isinstance(operator, AnyRequantize | RequantizeAdd | AnyAdd | AnyMultiply):
        return node
    readers = graph.consumers(node.output)
    if node.output in graph.outputs or len(readers) != 1:
        return node
    (reader,) = readers
    if not isinstance(reader.operator, Lookup) or reader.inputs[0] != node.output:
        return node
    table = graph.constants[reader.inputs[1]].reshape(-1, 256)
    low, high = _limits(table, operator.low, operator.high)
    return replace(node, operator=replace(operator, low=low, high=high))


def _limits(table: NDArray[np.generic], low: int, high: int) -> tuple[int, int]:
    """The narrowest that every row of ``table``, int8[C, 256], gives the same bytes for."""
    rows = table[:, low - LEAST : high - LEAST + 1]
    differs = np.flatnonzero((rows[:, 1:] != rows[:, :-1]).any(0))
    if not differs.size:
        return low, low
    return low + int(differs[0]), low + int(differs[-1]) + 1
