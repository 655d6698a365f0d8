"""A vision transformer: normalisations before the layers, and a token for the class.

Source: H. Touvron et al., "Training data-efficient image transformers", 2021: DeiT-Ti.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper

from .builder import Options, in_eights
from .rows import RowBuilder

__all__ = ["deit_tiny"]

LAYERS, HEADS, PATCH, HEAD_WIDTH = 12, 3, 16, 64
EPSILON = 1e-6


def deit_tiny(options: Options) -> onnx.ModelProto:
    """12 layers, 3 heads; 192 wide, and 197 rows for an image of 224x224."""
    size, width = options.size, HEADS * in_eights(HEAD_WIDTH * options.width)
    side = size // PATCH
    rows = side * side + 1
    net = RowBuilder(rows, width, HEADS, options.seed, EPSILON)
    kernel = net.constant(net.normal((3 * PATCH**2) ** -0.5, width, 3, PATCH, PATCH))
    bias = net.constant(net.normal(0.04, width))
    x = net.node("Conv", "image", kernel, bias, kernel_shape=[PATCH] * 2, strides=[PATCH] * 2)
    x = net.node("Reshape", x, net.constant(np.array([1, width, side * side])))
    x = net.node("Transpose", x, perm=[0, 2, 1])
    x = net.node("Concat", net.constant(net.normal(0.5, 1, 1, width)), x, axis=1)
    x = net.node("Add", x, net.constant(net.normal(0.3, 1, rows, width)))
    for _ in range(LAYERS):
        x = net.node("Add", x, net.attention(net.normalized(x)))
        x = net.node("Add", x, net.feed_forward(net.normalized(x), 4 * width))
    x = net.node("Gather", net.normalized(x), net.constant(np.array(0)), axis=1)
    logits = net.dense(x, width, options.classes)
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, (1, 3, size, size))
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, (1, options.classes))
    return net.model("deit_tiny", [image], [logits], [output])
