"""TensorFlow Lite's averages as averages with a scale, where that gives the same bytes.

    AverageFixed(x)  ->  AveragePool2d(x) [, Lookup]

A float32 scale a little above ``1 / n`` moves a mean that is half way away from zero, and no
other over the middle; all sums that there can be are tried.  The pass makes no AverageFixed, so it
ends.
"""

import numpy as np

from ....graph.ir import Node
from ....graph.operators.integer.fixed_point import AverageFixed
from ....graph.operators.integer.values import Lookup
from ....graph.operators.integer.windows import AveragePool2d
from ....graph.rewrite import Rewriter, Rewriting

__all__ = ["FIXED_AVERAGES"]

STEPS = range(5)
"""Scales that are tried: by how many units in the last place they are above the exact one."""
RAISE = 128


def _averaged(rewriter: Rewriter, node: Node) -> str | None:
    operator = node.operator
    if not isinstance(operator, AverageFixed) or any(operator.pads):
        return None
    count = operator.kernel[0] * operator.kernel[1]
    scale = _scale(count, operator.unsigned)
    if scale is None:
        return None
    zero_point = -RAISE if operator.unsigned else 0
    pool = AveragePool2d(operator.kernel, operator.strides, zero_point, zero_point, scale)
    builder, name = rewriter.builder, node.output
    if (operator.low, operator.high) == (-128, 127):
        return builder.node(pool, node.inputs, name, node.origin)
    mean = builder.node(pool, node.inputs, f"{name}/mean", node.origin)
    limited = np.clip(np.arange(-128, 128), operator.low, operator.high).astype(np.int8)
    table = builder.constant(f"{name}/table", limited)
    return builder.node(Lookup(), (mean, table), name, node.origin)


def _scale(count: int, unsigned: bool) -> float | None:
    """A float32 that gives all means of ``count`` bytes, rounded half away from zero."""
    sums = np.arange(0 if unsigned else -128 * count, (255 if unsigned else 127) * count + 1)
    wanted = np.sign(sums) * ((np.abs(sums) + count // 2) // count)
    exact = np.float32(1 / count)
    for step in STEPS:
        scale = (exact.view(np.int32) + np.int32(step)).view(np.float32)
        if np.array_equal(np.rint(sums.astype(np.float32) * scale), wanted):
            return float(scale)
    return None


FIXED_AVERAGES = Rewriting("fixed_averages", (_averaged,))
"""Windows that reach over a border are left: not all of their means have one divisor."""
