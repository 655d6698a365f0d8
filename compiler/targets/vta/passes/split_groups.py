"""Grouped convolutions by blocks of channels, as the accelerator's matrix core takes them.

So many groups are joined, the weights between them 0, that they fill blocks of channels in and out.
If these make one block of outputs they stay one convolution, else each becomes one of its own:

    Requantize(Conv2d(x, groups))  ->  Requantize(Conv2d(x, fewer groups))
    Requantize(Conv2d(x, groups))  ->  Concatenate(Requantize(Conv2d(Slice(x))), ...)

Depthwise convolutions are left as they are.  A group that fills blocks is not joined again, so the
pass ends.
"""

import numpy as np

from dovetail.isa.frozen import frozen, replace

from ....graph.ir import Array, Graph, Node
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.movement import Concatenate, Slice
from ....graph.rewrite import Rewriter, rewrite
from ..operators import AnyRequantize

__all__ = ["SplitGroups", "is_depthwise"]


def is_depthwise(operator: Conv2d, weights: tuple[int, ...]) -> bool:
    """True if each channel makes one of its own; ``weights``: their shape."""
    return operator.groups > 1 and weights[3] == 1 and weights[0] == operator.groups


@frozen
class SplitGroups:
    """lanes: channels of a block."""

    lanes: int
    name: str = "split_groups"

    def run(self, graph: Graph) -> Graph:
        """The rewritten graph; ``graph`` itself when nothing matches."""
        return rewrite(graph, (self._join, self._split))

    def _join(self, rewriter: Rewriter, node: Node) -> str | None:
        operator = node.operator
        if not isinstance(operator, Conv2d) or operator.groups == 1:
            return None
        weights = rewriter.graph.constants[node.inputs[1]]
        if is_depthwise(operator, weights.shape):
            return None
        each = self._joined(operator.groups, weights)
        if each == 1:
            return None
        kernel = _diagonal(weights, operator.groups, each, operator.weight_zero_point)
        constant = rewriter.builder.constant(f"{node.output}/weights", kernel)
        fewer = replace(operator, groups=operator.groups // each)
        inputs = (node.inputs[0], constant, node.inputs[2])
        return rewriter.builder.node(fewer, inputs, node.output, node.origin)

    def _joined(self, groups: int, weights: Array) -> int:
        """The least number of groups that fill blocks; all, if no fewer do."""
        outputs, channels = weights.shape[0] // groups, weights.shape[3]
        return next(
            n
            for n in range(1, groups + 1)
            if n == groups
            or (
                groups % n == 0 and n * outputs % self.lanes == 0 and n * channels % self.lanes == 0
            )
        )

    def _split(self, rewriter: Rewriter, node: Node) -> str | None:
        before = rewriter.producer(node.inputs[0])
        if not isinstance(node.operator, AnyRequantize) or before is None:
            return None
        operator = before.operator
        if not isinstance(operator, Conv2d) or operator.groups == 1:
            return None
        graph, builder = rewriter.graph, rewriter.builder
        weights, bias = (graph.constants[name] for name in before.inputs[1:])
        count, channels = len(weights) // operator.groups, weights.shape[3]
        if is_depthwise(operator, weights.shape) or count == self.lanes:
            return None
        scales = [graph.constants[name] for name in node.inputs[1:]]
        kind = graph.types[before.inputs[0]].shape
        parts = []
        for group in range(operator.groups):
            stem, outputs = f"{node.output}/{group}", slice(group * count, (group + 1) * count)
            part = Slice((0, 0, 0, group * channels), (1, 1, 1, 1), (*kind[:3], channels))
            x = builder.node(part, before.inputs[:1], f"{stem}/x", before.origin)
            inputs = (
                x,
                builder.constant(f"{stem}/weights", np.ascontiguousarray(weights[outputs])),
                builder.constant(f"{stem}/bias", bias[outputs].copy()),
            )
            conv = replace(operator, groups=1)
            total = builder.node(conv, inputs, f"{stem}/sum", before.origin)
            own = [builder.constant(f"{stem}/scale", each[outputs].copy()) for each in scales]
            parts.append(builder.node(node.operator, (total, *own), stem, before.origin))
        return builder.node(Concatenate(3), tuple(parts), node.output, node.origin)


def _diagonal(weights: Array, groups: int, each: int, zero_point: int) -> Array:
    """Weights of ``each`` groups as those of one."""
    outputs, height, width, channels = weights.shape
    count = outputs // groups
    full = np.full((outputs, height, width, each * channels), zero_point, weights.dtype)
    for group in range(groups):
        rows, place = slice(group * count, (group + 1) * count), group % each * channels
        full[rows, :, :, place : place + channels] = weights[rows]
    return full
