"""Channels of TensorFlow Lite's convolutions whose bytes do not depend on what they read.

    RequantizeFixed(Conv2d(x, w, b), m, s)  ->  the same with w = 0, b the result, m and s about 1

A channel that training has left without use often has tiny weights, and a bias beyond what the
vector unit keeps of one.  Where both ends of its sums give one byte, all sums do.  Only layers that
would be refused are rewritten, and a channel only once, so the pass ends.
"""

import numpy as np
from numpy.typing import NDArray

from ....graph.ir import Array, Graph, Node
from ....graph.operators.integer.fixed_point import RequantizeFixed
from ....graph.operators.integer.products import Conv2d
from ....graph.rewrite import Rewriter, Rewriting
from ..layers.fixed_sums import ANYTHING, sum_limits, sums_problem
from .split_groups import is_depthwise

__all__ = ["CONSTANT_CHANNELS"]

NEARLY_ONE = (1 << 31) - 1
"""A multiplier that leaves every sum below 2^30 as it is."""


def _without_weights(rewriter: Rewriter, node: Node) -> str | None:
    operator, total = node.operator, rewriter.producer(node.inputs[0])
    if not isinstance(operator, RequantizeFixed) or total is None:
        return None
    known = _constants(rewriter.graph, total, node)
    if known is None:
        return None
    convolution = total.operator
    assert isinstance(convolution, Conv2d)
    if sums_problem(convolution, *known) is None:
        return None
    weights, bias, multiplier, shift = (each.copy() for each in known)
    limits = sum_limits(convolution, weights, bias, _read(rewriter, total, weights))
    low, high = _results(operator, limits, multiplier, shift)
    constant = (low == high) & ((multiplier != NEARLY_ONE) | (shift != 0))
    if not constant.any():
        return None
    weights[constant] = convolution.weight_zero_point
    bias[constant] = low[constant].astype(np.int64) - operator.zero_point
    multiplier[constant], shift[constant] = NEARLY_ONE, 0
    builder, stem = rewriter.builder, node.output
    names = [
        builder.constant(f"{stem}/{name}", each)
        for name, each in (("w", weights), ("b", bias), ("m", multiplier), ("s", shift))
    ]
    inputs = (total.inputs[0], *names[:2], *total.inputs[3:])
    sums = builder.node(convolution, inputs, f"{stem}/sum", total.origin)
    return builder.node(operator, (sums, *names[2:]), stem, node.origin)


def _constants(graph: Graph, total: Node, finish: Node) -> list[Array] | None:
    """Weights, bias, multiplier and shift of a convolution, if it is one and they are constants."""
    if not isinstance(total.operator, Conv2d):
        return None
    names = (*total.inputs[1:3], *finish.inputs[1:])
    found = [graph.constants.get(name) for name in names]
    known = [each for each in found if each is not None]
    return known if len(known) == len(names) else None


def _results(
    operator: RequantizeFixed, limits: tuple[Array, Array], multiplier: Array, shift: Array
) -> tuple[Array, Array]:
    """The bytes of the smallest and the largest sum of each channel."""
    low, high = (
        operator.evaluate((np.clip(each, -(1 << 31), (1 << 31) - 1), multiplier, shift))[0]
        for each in limits
    )
    return low, high


def _read(rewriter: Rewriter, total: Node, weights: Array) -> NDArray[np.int64]:
    """The least and the most that each channel of a convolution's input can hold: int64[2, C], or
    [2, 1] for all.
    """
    finish = rewriter.producer(total.inputs[0])
    operator = total.operator
    assert isinstance(operator, Conv2d)
    if finish is None or not isinstance(finish.operator, RequantizeFixed):
        return ANYTHING
    before = rewriter.producer(finish.inputs[0])
    known = None if before is None else _constants(rewriter.graph, before, finish)
    if before is None or known is None:
        return ANYTHING
    if operator.groups > 1 and not is_depthwise(operator, weights.shape):
        return ANYTHING
    assert isinstance(before.operator, Conv2d)
    limits = sum_limits(before.operator, *known[:2])
    ends = np.array(_results(finish.operator, limits, *known[2:]), np.int64)
    # Padding counts as the zero point.
    ends = np.array((ends.min(axis=0), ends.max(axis=0)))
    zero = operator.zero_point
    return np.array((np.minimum(ends[0], zero), np.maximum(ends[1], zero)))


CONSTANT_CHANNELS = Rewriting("constant_channels", (_without_weights,))
