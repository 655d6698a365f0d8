"""Differences of two tensors without the table that turns the second one's sign.

    Add(a, Lookup(b, -1 - b))  ->  WeightedAdd(a, b), the second factor below 0

The factors are those of the sum's own form, so that the bytes are the same; sums without an exact
form stay.  Every step takes one table away, so the pass ends.
"""

import numpy as np

from ....graph.ir import Graph, Node
from ....graph.operators.integer.values import Add, Lookup, WeightedAdd
from ....graph.rewrite import Rewriter, Rewriting
from ..layers.fixed_point_add import find_fixed_point, is_exact

__all__ = ["DIFFERENCES"]

TURNED = np.invert(np.arange(-128, 128)).astype(np.int8)
"""Each byte with all bits turned: -1 less it."""


def _subtracted(rewriter: Rewriter, node: Node) -> str | None:
    operator, builder = node.operator, rewriter.builder
    if not isinstance(operator, Add):
        return None
    made = [rewriter.producer(name) for name in node.inputs]
    turned = [each is not None and _turns(rewriter.graph, each) for each in made]
    if sum(turned) != 1 or not is_exact(operator):
        return None
    table = made[turned.index(True)]
    assert table is not None
    form = find_fixed_point(operator)
    inputs, limits = list(node.inputs), (operator.low, operator.high)
    inputs[turned.index(True)] = table.inputs[0]
    m0, m1 = (-form.m0, form.m1) if turned[0] else (form.m0, -form.m1)
    offset = form.offset + (m0 if turned[0] else m1)
    total = WeightedAdd(m0, m1, offset, form.scale, form.zero_point, *limits)
    return builder.node(total, tuple(inputs), node.output, node.origin)


def _turns(graph: Graph, node: Node) -> bool:
    """True if a node turns all bits of its operand."""
    if not isinstance(node.operator, Lookup):
        return False
    table = graph.constants[node.inputs[1]]
    return table.ndim == 1 and np.array_equal(table, TURNED)


DIFFERENCES = Rewriting("differences", (_subtracted,))
