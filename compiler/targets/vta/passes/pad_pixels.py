"""Constants around an image, or beside its channels, made by a layer that copies.

    Pad(x, value)      ->  Requantize(Conv2d(x)), of one tap of 1, with ``value`` as its zero point
    Concatenate(x, c)  ->  Requantize(Conv2d(x)), of weights 0 and 1, with ``c`` as its biases

No window reads the first form's border as its own padding.  The second form joins one computed
image and constants of one value a channel.  Each node is visited once and none is made, so the pass
ends.
"""

import numpy as np

from ....dtypes import DType
from ....graph.ir import Array, Node
from ....graph.operators.integer.products import Conv2d
from ....graph.operators.integer.values import Requantize
from ....graph.operators.integer.windows import Pad
from ....graph.operators.movement import Concatenate
from ....graph.rewrite import Rewriter, Rewriting

__all__ = ["PAD_PIXELS"]


def _padded(rewriter: Rewriter, node: Node) -> str | None:
    operator = node.operator
    if not isinstance(operator, Pad):
        return None
    channels = rewriter.graph.types[node.output].shape[3]
    conv = Conv2d((1, 1), operator.pads, channels, operator.value)
    weights, bias = np.ones((channels, 1, 1, 1), np.int8), np.zeros(channels, np.int32)
    return _layer(rewriter, node, node.inputs[0], conv, weights, bias)


def _joined(rewriter: Rewriter, node: Node) -> str | None:
    given, kinds = rewriter.graph.constants, [rewriter.graph.types[name] for name in node.inputs]
    computed = [name for name in node.inputs if name not in given]
    if node.operator != Concatenate(3) or len(computed) != 1 or len(kinds) == 1:
        return None
    if any(kind.dtype is not DType.INT8 or kind.shape[0] != 1 for kind in kinds):
        return None
    bias, rows = list[Array](), list[int]()
    for name, kind in zip(node.inputs, kinds, strict=True):
        channels = kind.shape[3]
        values = given.get(name, np.zeros((1, 1, 1, channels), np.int8))
        if (values != values[:1, :1, :1]).any():
            return None
        bias.append(values[0, 0, 0])
        rows += range(channels) if name == computed[0] else [-1] * channels
    count = rewriter.graph.types[computed[0]].shape[3]
    weights = (np.array(rows)[:, None] == np.arange(count)).astype(np.int8)[:, None, None]
    conv = Conv2d((1, 1), (0, 0, 0, 0), 1, 0)
    return _layer(rewriter, node, computed[0], conv, weights, np.concatenate(bias).astype(np.int32))


def _layer(
    rewriter: Rewriter, node: Node, source: str, conv: Conv2d, weights: Array, bias: Array
) -> str:
    """The sums of ``conv`` as bytes."""
    builder, stem = rewriter.builder, node.output
    constants = (
        builder.constant(f"{stem}/weights", weights),
        builder.constant(f"{stem}/bias", bias),
    )
    total = builder.node(conv, (source, *constants), f"{stem}/sum", node.origin)
    scale = builder.constant(f"{stem}/scale", np.ones(len(bias), np.float32))
    finish = Requantize(conv.zero_point, -128, 127)
    return builder.node(finish, (total, scale), stem, node.origin)


PAD_PIXELS = Rewriting("pad_pixels", (_padded, _joined))
