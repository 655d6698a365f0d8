"""Checks of a graph beyond its types, which ``Graph`` checks when it is made."""

import numpy as np

from ..errors import GraphError
from .bounds import LIMIT, accumulator_bound
from .ir import Array, Graph, Node
from .operators.integer.products import Conv2d, Dense
from .operators.integer.values import Lookup, Requantize

__all__ = ["verify"]


def verify(graph: Graph) -> None:
    """Check every node.

    Raises GraphError, naming the node, when an accumulator could overflow int32, when weights,
    biases, scales or tables are not constants, when a scale is not finite or not above 0, and when
    a constant can be written.
    """
    for name, array in graph.constants.items():
        if array.flags.writeable:
            raise GraphError(f"constant {name!r} can be written; required a read-only array")
    if not graph.outputs:
        raise GraphError("the graph has no outputs; required at least one")
    if len(set(graph.outputs)) != len(graph.outputs):
        raise GraphError(f"outputs {list(graph.outputs)} name a tensor twice")
    for node in graph.nodes:
        _verify_node(graph, node)


def _verify_node(graph: Graph, node: Node) -> None:
    match node.operator:
        case Conv2d() | Dense() as operator:
            weights, bias = (_constant(graph, node, place) for place in (1, 2))
            factors = weights.astype(np.int64) - operator.weight_zero_point
            bound = accumulator_bound(factors, bias, operator.zero_point)
            if bound > LIMIT:
                raise GraphError(
                    f"node {node.origin!r}: an accumulator can reach {bound}; int32 holds {LIMIT}"
                )
        case Requantize():
            scale = _constant(graph, node, 1)
            if not np.all(np.isfinite(scale)) or np.any(scale <= 0):
                raise GraphError(
                    f"node {node.origin!r}: a scale of {float(scale.min())!r}; required "
                    "finite scales above 0"
                )
        case Lookup():
            _constant(graph, node, 1)
        case _:
            pass


def _constant(graph: Graph, node: Node, place: int) -> Array:
    name = node.inputs[place]
    if name not in graph.constants:
        raise GraphError(
            f"node {node.origin!r}: input {place} ({name!r}) is computed; required a constant"
        )
    return graph.constants[name]
