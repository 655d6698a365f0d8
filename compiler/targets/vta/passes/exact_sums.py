"""Sums without a form of the vector unit's, as the nearest and what it lacks.

    Add(a, b)  or  AddFixed(a, b)
     ->  near = WeightedAdd(a, b);  more = Lookup(WeightedAdd'(a, b));  near + more

The nearest form differs for a few pairs of operands.  For each of them ``256 * (a - a0) + b - b0``,
limited to -1..1, is 0 for that pair alone; a table holds what the form lacks there.
"""

import numpy as np

from ....errors import UnsupportedOperatorError
from ....graph.ir import Node
from ....graph.operators.integer.fixed_point import AddFixed
from ....graph.operators.integer.values import Add, Lookup, WeightedAdd
from ....graph.rewrite import Rewriter, Rewriting
from ..layers.fixed_point_add import find_fixed_point

__all__ = ["EXACT_SUMS"]

MOST_PAIRS = 16
"""Each takes two layers."""


def _corrected(rewriter: Rewriter, node: Node) -> str | None:
    operator, builder, name = node.operator, rewriter.builder, node.output
    if not isinstance(operator, Add | AddFixed):
        return None
    if builder.types[node.inputs[0]] != builder.types[node.inputs[1]]:
        return None
    try:
        form = find_fixed_point(operator)
    except UnsupportedOperatorError:
        return None
    if not 0 < form.inexact_pairs <= MOST_PAIRS:
        return None
    limits = operator.low, operator.high
    near = WeightedAdd(form.m0, form.m1, form.offset, form.scale, form.zero_point, *limits)
    total = builder.node(near, node.inputs, f"{name}/near", node.origin)
    lacks = _lacks(operator, near)
    for place, (a, b, lack) in enumerate(lacks, 1):
        finder = WeightedAdd(256, 1, -256 * a - b, 1, 0, -1, 1)
        where = builder.node(finder, node.inputs, f"{name}/where/{place}", node.origin)
        values = np.zeros(256, np.int8)
        values[128] = lack
        table = builder.constant(f"{name}/table/{place}", values)
        more = builder.node(Lookup(), (where, table), f"{name}/more/{place}", node.origin)
        last = name if place == len(lacks) else f"{name}/near/{place}"
        plain = WeightedAdd(1, 1, 0, 1, 0, *limits)
        total = builder.node(plain, (total, more), last, node.origin)
    return total


def _lacks(operator: Add | AddFixed, near: WeightedAdd) -> list[tuple[int, int, int]]:
    """The pairs where ``near`` is not the sum: a, b, and by how much the sum is larger."""
    operands = np.arange(-128, 128, dtype=np.int8)
    pairs = operands[:, None], operands[None, :]
    (wanted,), (found,) = operator.evaluate(pairs), near.evaluate(np.broadcast_arrays(*pairs))
    lack = wanted.astype(np.int64) - found
    return [(int(a) - 128, int(b) - 128, int(lack[a, b])) for a, b in np.argwhere(lack)]


EXACT_SUMS = Rewriting("exact_sums", (_corrected,))
"""Sums that have a form are left, and those whose form differs for more pairs.

The pass makes sums of whole numbers alone, so it ends.
"""
