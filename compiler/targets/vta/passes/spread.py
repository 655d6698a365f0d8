"""Channels followed by others that all hold one byte, made by a layer.

Requantize(Conv2d(x)), of one tap of 1 for each channel of x, and of none for the others
"""

import numpy as np

from dovetail.isa.frozen import frozen

from ....graph.ir import Graph, GraphBuilder, Node
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.values import Requantize

__all__ = ["Spread", "find_spread", "spread"]

PLAIN = Conv2d((1, 1), (0, 0, 0, 0), 1, 0)
SAME = Requantize(0, -128, 127)


@frozen
class Spread:
    """An image ``x`` of which ``count`` channels are made; those that it lacks hold ``blank``."""

    x: str
    count: int
    blank: int


def spread(builder: GraphBuilder, x: str, count: int, blank: int, origin: str) -> str:
    """The image int8[1, H, W, count] of ``x``, int8[1, H, W, C], with ``blank`` in the channels
    behind its own; ``x`` itself when it has as many.
    """
    channels, stem = builder.types[x].shape[3], f"{x}/spread"
    if channels == count:
        return x
    bias = np.zeros(count, np.int32)
    bias[channels:] = blank
    inputs = (
        x,
        builder.constant(f"{stem}/weights", np.eye(count, channels, dtype=np.int8)[:, None, None]),
        builder.constant(f"{stem}/bias", bias),
    )
    total = builder.node(PLAIN, inputs, f"{stem}/sum", origin)
    scale = builder.constant(f"{stem}/scale", np.ones(count, np.float32))
    return builder.node(SAME, (total, scale), stem, origin)


def find_spread(graph: Graph, node: Node) -> Spread | None:
    """The spread of ``node``, the last of a layer; None if it does something else."""
    if node.operator != SAME:
        return None
    total = graph.producer(node.inputs[0])
    if total is None or total.operator != PLAIN or len(graph.consumers(total.output)) > 1:
        return None
    weights, bias, scale = (graph.constants[name] for name in (*total.inputs[1:], node.inputs[1]))
    count, channels = weights.shape[0], weights.shape[3]
    if count <= channels or (weights[:, 0, 0] != np.eye(count, channels)).any():
        return None
    blank = int(bias[-1])
    wanted = np.where(np.arange(count) < channels, 0, blank)
    if (bias != wanted).any() or (scale != 1).any():
        return None
    return Spread(total.inputs[0], count, blank)
