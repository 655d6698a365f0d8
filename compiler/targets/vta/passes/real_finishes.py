"""TensorFlow Lite's dense layers as layers with a float32 scale, where that gives the same bytes.

    RequantizeReal(Dense(x, w, b), scale)  ->  Requantize(Dense(x, w, b), float32 scale)

A product in float64, rounded half away from zero, becomes one in float32, rounded half to even.
Both grow with the sum.  So they are equal for all sums that a channel's weights allow if they are
equal on both sides of every step, and at both ends.  Neighbours of the scale are tried for each
channel.  The pass makes no RequantizeReal, so it ends.
"""

import numpy as np
from numpy.typing import NDArray

from ....graph.ir import Array, Node
from ....graph.operators.integer.fixed_point import RequantizeReal
from ....graph.operators.integer.products import Conv2d, Dense
from ....graph.operators.integer.values import Requantize
from ....graph.rewrite import Rewriter, Rewriting
from ..layers.fixed_sums import sum_limits

__all__ = ["REAL_FINISHES", "find_scales"]

STEPS = sorted(range(-24, 25), key=abs)
"""Neighbouring scales that are tried: by how many units in the last place they differ."""
AROUND = np.arange(-2, 4)
"""Sums that are tried around a step, which float64 gives to less than one."""


def _single(rewriter: Rewriter, node: Node) -> str | None:
    operator = node.operator
    total = rewriter.producer(node.inputs[0])
    if not isinstance(operator, RequantizeReal) or total is None:
        return None
    if not isinstance(total.operator, Conv2d | Dense):
        return None
    graph, builder = rewriter.graph, rewriter.builder
    names = (*total.inputs[1:3], node.inputs[1])
    if any(name not in graph.constants for name in names):
        return None
    weights, bias, scales = (graph.constants[name] for name in names)
    found = find_scales(operator, sum_limits(total.operator, weights, bias), scales)
    if found is None:
        return None
    scale = builder.constant(f"{node.output}/scale", found)
    finish = Requantize(operator.zero_point, operator.low, operator.high)
    return builder.node(finish, (node.inputs[0], scale), node.output, node.origin)


def find_scales(
    operator: RequantizeReal, limits: tuple[Array, Array], scales: Array
) -> NDArray[np.float32] | None:
    """A float32 scale for each channel that gives the bytes of ``operator``; None without one.

    limits: int64[O], the smallest and largest sum.  scales: float64[O].
    """
    finish = Requantize(operator.zero_point, operator.low, operator.high)
    # Halves between all results there are.
    halves = np.arange(operator.low, operator.high + 2) - operator.zero_point - 0.5
    found = []
    for low, high, scale in zip(*limits, scales, strict=True):
        near = (np.floor(halves / scale)[:, None] + AROUND).reshape(-1)
        sums = np.clip(np.append(near, (low, high)), low, high).astype(np.int32)[:, None]
        (wanted,) = operator.evaluate((sums, scale[None]))
        for step in STEPS:
            candidate = (np.float32(scale).view(np.int32) + np.int32(step)).view(np.float32)
            if np.array_equal(finish.evaluate((sums, np.array([candidate])))[0], wanted):
                found.append(candidate)
                break
        else:
            return None
    return np.array(found, np.float32)


REAL_FINISHES = Rewriting("real_finishes", (_single,))
"""Layers with a channel that has no such scale are left."""
