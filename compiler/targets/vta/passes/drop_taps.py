"""Rows and columns of taps that read nothing but padding, dropped.

    Conv2d(x, w, padded)  ->  Conv2d(x, some rows and columns of w, less padded)

So a dilation that is wider than the image, as in a pyramid of dilated convolutions over a small
one, takes no room for padding.  What a tap reads of the padding adds 0.  Each step leaves fewer
taps, so the pass ends.
"""

import numpy as np

from dovetail.isa.frozen import replace

from ....graph.ir import Node
from ....graph.operators.integer.products import Conv2d
from ....graph.rewrite import Rewriter, Rewriting

__all__ = ["DROP_TAPS"]


def _drop(rewriter: Rewriter, node: Node) -> str | None:
    operator, graph, builder = node.operator, rewriter.graph, rewriter.builder
    if not isinstance(operator, Conv2d) or not any(operator.pads):
        return None
    sizes, counts = (graph.types[name].shape[1:3] for name in (node.inputs[0], node.output))
    weights, kept, pads = graph.constants[node.inputs[1]], [], list(operator.pads)
    for axis in range(2):
        step, stride = operator.dilations[axis], operator.strides[axis]
        taps, before = np.arange(weights.shape[1 + axis]), pads[axis]
        places = np.arange(counts[axis])[:, None] * stride - before + taps * step
        live = taps[((places >= 0) & (places < sizes[axis])).any(axis=0)]
        if not live.size:
            return None
        first, last = int(live[0]), int(live[-1])
        span = (last - first) * step + 1
        pads[axis] = before - first * step
        room = sizes[axis] + pads[axis] - span
        pads[axis + 2] = max((counts[axis] - 1) * stride - room, 0)
        if pads[axis] < 0 or (room + pads[axis + 2]) // stride + 1 != counts[axis]:
            return None
        kept.append(slice(first, last + 1))
    less = weights[:, kept[0], kept[1]]
    if less.shape == weights.shape:
        return None
    constant = builder.constant(f"{node.output}/taps", np.ascontiguousarray(less))
    inner = replace(operator, pads=(pads[0], pads[1], pads[2], pads[3]))
    inputs = (node.inputs[0], constant, node.inputs[2])
    return builder.node(inner, inputs, node.output, node.origin)


DROP_TAPS = Rewriting("drop_taps", (_drop,))
