"""Small models to tune."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dovetail.compiler.front.onnx.source import SourceModel

__all__ = ["small_model"]


def small_model(channels: int = 16, size: int = 10, seed: int = 0) -> SourceModel:
    """A 3x3 convolution with padding, bias and ReLU, a pool, and a dense layer."""
    rng = np.random.default_rng(seed)

    def constant(name: str, shape: tuple[int, ...]) -> onnx.TensorProto:
        return numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)

    half = size // 2
    weights = [
        constant("w", (channels, channels, 3, 3)),
        constant("b", (channels,)),
        constant("d", (channels * half * half, 8)),
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("MaxPool", ["r"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"], "flatten"),
        helper.make_node("MatMul", ["f", "d"], ["y"], "dense"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, size, size])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    opsets = [helper.make_opsetid("", 17)]
    return SourceModel(helper.make_model(graph, opset_imports=opsets, ir_version=9))
