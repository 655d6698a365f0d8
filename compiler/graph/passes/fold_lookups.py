"""Merge tables, and fold those that only clip into the operator before.

    Lookup(Lookup(x, a), b)                  ->  Lookup(x, b[a])
    Lookup(x, identity)                      ->  x
    Lookup(Requantize(x), clip) | Add | Multiply ...  ->  Requantize(x) with narrower limits

This holds for tables that all channels share.  Every rewrite removes a Lookup and none is added, so
the pass ends.
"""

from dataclasses import replace

import numpy as np

from ..ir import Array, Node
from ..operators.integer.fixed_point import (
    AddFixed,
    AverageFixed,
    MultiplyFixed,
    RequantizeFixed,
    RequantizeReal,
)
from ..operators.integer.values import Add, Lookup, Multiply, Requantize
from ..rewrite import Rewriter, Rewriting

__all__ = ["FOLD_LOOKUPS"]

LIMITED = (
    *(Requantize, RequantizeFixed, RequantizeReal),
    *(Add, AddFixed, Multiply, MultiplyFixed, AverageFixed),
)


def _table(rewriter: Rewriter, node: Node) -> Array | None:
    if not isinstance(node.operator, Lookup):
        return None
    table = rewriter.graph.constants.get(node.inputs[1])
    return table if table is not None and table.ndim == 1 else None


def _drop_identity(rewriter: Rewriter, node: Node) -> str | None:
    table = _table(rewriter, node)
    if table is None or not np.array_equal(table, np.arange(-128, 128)):
        return None
    return node.inputs[0]


def _merge_tables(rewriter: Rewriter, node: Node) -> str | None:
    table = _table(rewriter, node)
    before = rewriter.producer(node.inputs[0])
    first = _table(rewriter, before) if before else None
    if table is None or before is None or first is None:
        return None
    merged = rewriter.builder.constant(f"{node.output}/table", table[first.astype(np.int16) + 128])
    return rewriter.builder.node(Lookup(), (before.inputs[0], merged), node.output, node.origin)


def _fold_clip(rewriter: Rewriter, node: Node) -> str | None:
    table = _table(rewriter, node)
    before = rewriter.producer(node.inputs[0])
    if table is None or before is None or not isinstance(before.operator, LIMITED):
        return None
    low, high = before.operator.low, before.operator.high
    reached = np.arange(low, high + 1)
    found = table[reached + 128]
    if not np.array_equal(found, np.clip(reached, found[0], found[-1])):
        return None
    operator = replace(before.operator, low=int(found[0]), high=int(found[-1]))
    return rewriter.builder.node(operator, before.inputs, node.output, before.origin)


FOLD_LOOKUPS = Rewriting("fold_lookups", (_drop_identity, _merge_tables, _fold_clip))
