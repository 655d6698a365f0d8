"""Transposed convolutions as plain ones, one for each place within a stride.

    Requantize(ConvTranspose2d(x))  ->  Assemble(Requantize(Conv2d(x)), Requantize(Conv2d(x)), ...)

Row ``q * stride + a`` of the result reads only the taps ``k`` with ``k = a + top`` modulo the
stride, of row ``q + (a + top - k) / stride``: so nothing is multiplied by the zeros between rows.
Each ConvTranspose2d is visited once and none is made, so the pass ends.
"""

from itertools import product

import numpy as np

from dovetail.isa.frozen import frozen

from ..ir import Array, Node
from ..operators.assembly import Assemble
from ..operators.integer.fixed_point import RequantizeFixed, RequantizeReal
from ..operators.integer.products import Conv2d, ConvTranspose2d
from ..operators.integer.values import Requantize
from ..rewrite import Rewriter, Rewriting

__all__ = ["SPLIT_TRANSPOSED"]

REQUANTIZE = (Requantize, RequantizeFixed, RequantizeReal)


@frozen
class _Phase:
    """One phase of a dimension: rows ``start``, ``start + stride``, ... of the result.

    taps: of the kernel, in the order of the rows that they read; None for one that counts as 0.
    before, after: rows of padding.
    """

    start: int
    taps: tuple[int | None, ...]
    before: int
    after: int


def _phases(stride: int, taps: int, before: int, size: int, result: int) -> list[_Phase]:
    """The phases that have rows.

    before: rows of the result cut off at its start.  size: of what is read.
    """
    found = []
    for start in range(min(stride, result)):
        reach, first = divmod(start + before, stride)
        chosen: list[int | None] = [*reversed(range(first, taps, stride))] or [None]
        # Row q reads from row q + low on.
        low = reach - len(chosen) + 1
        if low > 0:
            chosen, low = [*[None] * low, *chosen], 0
        count = -(-(result - start) // stride)
        after = count + len(chosen) - 1 + low - size
        if after < 0:
            chosen, after = [*chosen, *[None] * -after], 0
        found.append(_Phase(start, tuple(chosen), -low, after))
    return found


def _split(rewriter: Rewriter, node: Node) -> str | None:
    if not isinstance(node.operator, REQUANTIZE):
        return None
    before = rewriter.producer(node.inputs[0])
    if before is None or not isinstance(before.operator, ConvTranspose2d):
        return None
    operator = before.operator
    graph, builder = rewriter.graph, rewriter.builder
    weights = graph.constants[before.inputs[1]]
    _, height, width, _ = graph.types[before.inputs[0]].shape
    _, rows, columns, _ = graph.types[node.output].shape
    down = _phases(operator.strides[0], weights.shape[1], operator.pads[0], height, rows)
    across = _phases(operator.strides[1], weights.shape[2], operator.pads[1], width, columns)
    parts = []
    for y, x in product(down, across):
        stem = f"{node.output}/{y.start}.{x.start}"
        kernel = _taken(weights, y.taps, 1, operator.weight_zero_point)
        kernel = _taken(kernel, x.taps, 2, operator.weight_zero_point)
        conv = Conv2d(
            (1, 1),
            (y.before, x.before, y.after, x.after),
            operator.groups,
            operator.zero_point,
            operator.weight_zero_point,
        )
        inputs = (before.inputs[0], builder.constant(f"{stem}/weights", kernel), before.inputs[2])
        total = builder.node(conv, inputs, f"{stem}/sum", before.origin)
        finish = (total, *node.inputs[1:])
        parts.append(builder.node(node.operator, finish, stem, before.origin))
    if len(parts) == 1:
        return parts[0]
    starts = tuple((y.start, x.start) for y, x in product(down, across))
    whole = Assemble((rows, columns), starts, operator.strides)
    return builder.node(whole, tuple(parts), node.output, node.origin)


def _taken(weights: Array, taps: tuple[int | None, ...], axis: int, zero_point: int) -> Array:
    """``weights`` with ``taps`` along ``axis``."""
    nothing = np.full_like(weights.take([0], axis), zero_point)
    parts = [nothing if tap is None else weights.take([tap], axis) for tap in taps]
    return np.ascontiguousarray(np.concatenate(parts, axis))


SPLIT_TRANSPOSED = Rewriting("split_transposed", (_split,))
