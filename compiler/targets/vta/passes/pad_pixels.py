"""Borders that no window can read as its own padding, made by a layer that copies.

    Pad(x, value)  ->  Requantize(Conv2d(x)), of one tap of 1, padded with its zero point ``value``

Each Pad is visited once and none is made, so the pass ends.
"""

import numpy as np

from ....graph.ir import Node
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.values import Requantize
from ....graph.operators.integer.windows import Pad
from ....graph.rewrite import Rewriter, Rewriting

__all__ = ["PAD_PIXELS"]


def _copied(rewriter: Rewriter, node: Node) -> str | None:
    operator, builder, stem = node.operator, rewriter.builder, node.output
    if not isinstance(operator, Pad):
        return None
    channels = rewriter.graph.types[stem].shape[3]
    inputs = (
        node.inputs[0],
        builder.constant(f"{stem}/weights", np.ones((channels, 1, 1, 1), np.int8)),
        builder.constant(f"{stem}/bias", np.zeros(channels, np.int32)),
    )
    conv = Conv2d((1, 1), operator.pads, channels, operator.value)
    total = builder.node(conv, inputs, f"{stem}/sum", node.origin)
    scale = builder.constant(f"{stem}/scale", np.ones(channels, np.float32))
    return builder.node(Requantize(operator.value, -128, 127), (total, scale), stem, node.origin)


PAD_PIXELS = Rewriting("pad_pixels", (_copied,))
