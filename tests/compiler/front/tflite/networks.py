"""A network of several layers in floats, as converters of TensorFlow write them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .build import Array, Op, Tensor, write

__all__ = ["mobile_net"]

RELU6 = 3


@dataclass
class _Layers:
    """Tensors and operators so far; random weights."""

    generator: np.random.Generator
    tensors: list[Tensor]
    ops: list[Op] = field(default_factory=list)

    def constant(self, name: str, data: Array) -> int:
        self.tensors.append(Tensor(name, data.shape, str(data.dtype), data))
        return len(self.tensors) - 1

    def weights(self, name: str, *shape: int, inputs: int) -> int:
        drawn = self.generator.standard_normal(shape) / np.sqrt(inputs / 2)
        return self.constant(name, drawn.astype(np.float32))

    def bias(self, name: str, size: int) -> int:
        drawn = self.generator.uniform(-0.2, 0.2, size)
        return self.constant(name, drawn.astype(np.float32))

    def add(self, kind: str, name: str, inputs: tuple[int, ...], table: str, **options: Any) -> int:
        self.tensors.append(Tensor(name, ()))
        self.ops.append(Op(kind, inputs, (len(self.tensors) - 1,), table, options))
        return len(self.tensors) - 1

    def convolution(self, name: str, x: int, size: int, c: int, o: int, stride: int) -> int:
        w = self.weights(f"{name}/w", o, size, size, c, inputs=size * size * c)
        operands, steps = (x, w, self.bias(f"{name}/b", o)), {"StrideH": stride, "StrideW": stride}
        common = {"Padding": 0, "DilationHFactor": 1, "DilationWFactor": 1, **steps}
        fused = RELU6 if name != "project" else 0
        common["FusedActivationFunction"] = fused
        return self.add("CONV_2D", name, operands, "Conv2DOptions", **common)

    def depthwise(self, name: str, x: int, c: int, stride: int) -> int:
        operands = x, self.weights(f"{name}/w", 1, 3, 3, c, inputs=9), self.bias(f"{name}/b", c)
        steps = {"StrideH": stride, "StrideW": stride, "DilationHFactor": 1, "DilationWFactor": 1}
        return self.add(
            "DEPTHWISE_CONV_2D",
            *(name, operands, "DepthwiseConv2DOptions"),
            **{"Padding": 0, "DepthMultiplier": 1, "FusedActivationFunction": RELU6, **steps},
        )


def mobile_net(size: int = 16, classes: int = 5, metadata: bytes = b"") -> bytes:
    """Images [1, size, size, 3], channels last, to shares of classes, and the features they follow
    from: convolutions, an inverted residual, means, a dense layer and softmax.
    """
    layers = _Layers(np.random.default_rng(4), [Tensor("image", (1, size, size, 3))])
    x = layers.convolution("stem", 0, 3, 3, 16, 2)
    x = layers.depthwise("deep", x, 16, 1)
    short = x = layers.convolution("point", x, 1, 16, 24, 1)
    x = layers.convolution("expand", x, 1, 24, 48, 1)
    x = layers.depthwise("wide", x, 48, 1)
    x = layers.convolution("project", x, 1, 48, 24, 1)
    x = layers.add("ADD", "sum", (short, x), "AddOptions", FusedActivationFunction=0)
    x = layers.depthwise("smaller", x, 24, 2)
    x = layers.convolution("features", x, 1, 24, 32, 1)
    axes = layers.constant("axes", np.array([1, 2], np.int32))
    mean = layers.add("MEAN", "mean", (x, axes), "ReducerOptions", KeepDims=False)
    operands = mean, layers.weights("w", classes, 32, inputs=32), layers.bias("b", classes)
    scores = layers.add(
        *("FULLY_CONNECTED", "scores", operands, "FullyConnectedOptions"),
        FusedActivationFunction=0,
    )
    shares = layers.add("SOFTMAX", "shares", (scores,), "SoftmaxOptions", Beta=1.0)
    return write(layers.tensors, layers.ops, [0], [shares, mean], metadata)
