"""Models of a layer or two that reach the rules of CPUs and GPUs, in ONNX's text."""

import numpy as np
import onnx
from onnx import numpy_helper, parser

__all__ = ["LAYERS", "layer"]

LAYERS: dict[str, tuple[str, str, dict[str, tuple[int, ...]]]] = {
    "3x3": ("1,16,14,14", "y = Conv<pads=[1,1,1,1]>(x, w)", {"w": (32, 16, 3, 3)}),
    "3x3, large": ("1,64,28,28", "y = Conv<pads=[1,1,1,1]>(x, w)", {"w": (64, 64, 3, 3)}),
    "7x7, stride 2": (
        "1,3,40,40",
        "a = Conv<pads=[3,3,3,3], strides=[2,2]>(x, w, b) y = Relu(a)",
        {"w": (32, 3, 7, 7), "b": (32,)},
    ),
    "1x1": ("1,24,9,9", "y = Conv(x, w)", {"w": (40, 24, 1, 1)}),
    "1x1, one pixel": ("1,256,1,1", "y = Conv(x, w)", {"w": (64, 256, 1, 1)}),
    "depthwise": (
        "1,48,17,17",
        "y = Conv<pads=[1,1,1,1], group=48>(x, w)",
        {"w": (48, 1, 3, 3)},
    ),
    "groups": ("1,16,10,10", "y = Conv<group=4>(x, w)", {"w": (32, 4, 3, 3)}),
    "transposed": ("1,12,7,7", "y = ConvTranspose<strides=[2,2]>(x, w)", {"w": (12, 20, 3, 3)}),
    "dense": ("1,200", "y = Gemm(x, w, b)", {"w": (200, 96), "b": (96,)}),
    "dense, many rows": ("64,96", "y = MatMul(x, w)", {"w": (96, 160)}),
    "products": ("4,33,24", "t = Transpose<perm=[0,2,1]>(x) y = MatMul(x, t)", {}),
    "attention": (
        "2,48,32",
        "t = Transpose<perm=[0,2,1]>(x) s = MatMul(x, t) p = Softmax<axis=-1>(s) y = MatMul(p, x)",
        {},
    ),
    "softmax": ("6,130", "y = Softmax<axis=-1>(x)", {}),
    "softmax across": ("6,40,10", "y = Softmax<axis=1>(x)", {}),
    "norm": (
        "5,96",
        "y = LayerNormalization<axis=-1>(x, w, b)",
        {"w": (96,), "b": (96,)},
    ),
    "max pool": (
        "1,20,15,15",
        "y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x)",
        {},
    ),
    "average": ("1,20,12,12", "y = AveragePool<kernel_shape=[2,2], strides=[2,2]>(x)", {}),
    "global": ("1,64,8,8", "y = GlobalAveragePool(x)", {}),
    "sums of columns": ("300,20", "y = ReduceSum<keepdims=0>(x, axes)", {"axes": ()}),
    "transpose": ("3,40,50", "y = Transpose<perm=[2,1,0]>(x)", {}),
    "planes to pixels": ("1,4,32,32", "y = Transpose<perm=[0,2,3,1]>(x)", {}),
    "curve": ("7,100", "a = Erf(x) b = Exp(a) y = Mul(b, x)", {}),
    "sorted": ("5,30", "y, i = TopK<axis=1>(x, k)", {"k": (1,)}),
    "bytes": (
        "33,64",
        "q = QuantizeLinear(x, scale, zero) a = MatMulInteger(q, v, zero) y = Cast<to=1>(a)",
        {"v": (64, 48), "scale": (), "zero": ()},
    ),
    "3x3 of bytes": (
        "1,24,11,11",
        "q = QuantizeLinear(x, scale, zero) a = ConvInteger<pads=[1,1,1,1]>(q, v, zero) "
        "y = Cast<to=1>(a)",
        {"v": (40, 24, 3, 3), "scale": (), "zero": ()},
    ),
    "recurrent": (
        "6,2,8",
        "y = LSTM<hidden_size=12>(x, w, r)",
        {"w": (1, 48, 8), "r": (1, 48, 12)},
    ),
}
"""By name: the input's shape, nodes, and the constants' shapes."""
KNOWN = {
    "axes": np.array([0], np.int64),
    "k": np.array([4], np.int64),
    "scale": np.float32(0.05),
    "zero": np.uint8(128),
}
"""Constants that are no weights; weights called v are bytes."""


def layer(name: str) -> onnx.ModelProto:
    """The model; weights are small random numbers, the same each time."""
    shape, nodes, constants = LAYERS[name]
    text = f'<ir_version: 10, opset_import: ["": 21]> g (float[{shape}] x) => (y) {{{nodes}}}'
    model, rng = parser.parse_model(text), np.random.default_rng(0)
    for key, size in constants.items():
        random = rng.normal(0, 0.1, size)
        own = (127 * random).astype(np.int8) if key == "v" else random.astype(np.float32)
        array = np.asarray(KNOWN.get(key, own))
        model.graph.initializer.append(numpy_helper.from_array(array, key))
    return model
