"""A float ONNX network, layer by layer, with random weights.

Weights of a layer are normal with variance ``gain / fan_in``: a gain of 2 in front of a ReLU keeps
the mean square of activations (K. He et al., "Delving Deep into Rectifiers", 2015).
"""

from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

__all__ = ["NetworkBuilder", "Options", "Tensor", "in_eights"]

OPSET, HARD_SWISH_OPSET, IR_VERSION = 13, 14, 8
LEAKY_SLOPE = 0.1
GAINS = {
    "": 1.0,
    "Relu": 2.0,
    "Relu6": 2.0,
    "LeakyRelu": 2.0 / (1 + LEAKY_SLOPE**2),
    "HardSwish": 2.1,
    "HardSigmoid": 3.0,
}
"""By activation."""


@dataclass(frozen=True, slots=True)
class Options:
    """size: height and width of the image.  width: factor of the channels of inner layers.

    batch_norm: BatchNormalization nodes where the publication has them, instead of biases.
    """

    size: int = 224
    classes: int = 1000
    width: float = 1.0
    batch_norm: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.size < 32 or self.size % 32:
            raise ValueError(f"size {self.size}; required a multiple of 32")
        if not 0 < self.width <= 4 or self.classes < 1:
            raise ValueError(f"width {self.width}, {self.classes} classes; required 0 < width <= 4")

    def channels(self, count: int) -> int:
        """``count`` times the width, in steps of 8, never less than nine tenths of it.

        Source: M. Sandler et al., "MobileNetV2", 2018, and its published code.
        """
        return count if self.width == 1.0 else in_eights(count * self.width)


def in_eights(exact: float) -> int:
    """A number of channels near ``exact``: a multiple of 8, not less than nine tenths of it."""
    rounded = max(8, int(exact + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * exact else rounded + 8


@dataclass(frozen=True, slots=True)
class Tensor:
    """A float tensor of the model."""

    name: str
    shape: tuple[int, ...]


class NetworkBuilder:
    """Collects nodes and constants; every method adds a layer and returns its output."""

    def __init__(self, name: str, options: Options) -> None:
        self.options = options
        self._name = name
        self._rng = np.random.default_rng(options.seed)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._names: dict[str, int] = {}

    def image(self) -> Tensor:
        """The input."""
        return Tensor("image", (1, 3, self.options.size, self.options.size))

    def conv(
        self,
        x: Tensor,
        channels: int,
        kernel: int,
        *,
        stride: int = 1,
        pad: int | None = None,
        groups: int = 1,
        activation: str = "Relu",
        gain: float = 1.0,
        normalized: bool = True,
        name: str = "conv",
    ) -> Tensor:
        """A square convolution and its activation; ``pad`` keeps the size unless given.

        gain: of the weights, on top of the activation's.  normalized: the publication has a batch
        normalisation here.
        """
        pad = kernel // 2 if pad is None else pad
        shape = (channels, x.shape[1] // groups, kernel, kernel)
        size = (x.shape[2] + 2 * pad - kernel) // stride + 1
        name = self._unique(name)
        weights = self._weights(f"{name}/weights", shape, gain * GAINS[activation])
        inputs = [x.name, weights]
        batch_norm = normalized and self.options.batch_norm
        if not batch_norm:
            inputs.append(self._constant(f"{name}/bias", self._uniform(channels, -0.1, 0.1)))
        out = self._node(
            "Conv",
            inputs,
            name,
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[pad] * 4,
            group=groups,
        )
        result = Tensor(out, (1, channels, size, size))
        if batch_norm:
            result = self._batch_norm(result)
        return self.activate(result, activation)

    def activate(self, x: Tensor, kind: str) -> Tensor:
        """``kind``: empty, Relu, Relu6, LeakyRelu, HardSwish or HardSigmoid (of slope 1 / 6)."""
        name = f"{x.name}/{kind.lower()}"
        match kind:
            case "":
                return x
            case "Relu6":
                limits = [self._constant(f"{name}/{n}", np.float32(n)) for n in (0, 6)]
                return Tensor(self._node("Clip", [x.name, *limits], name), x.shape)
            case "LeakyRelu":
                return Tensor(self._node(kind, [x.name], name, alpha=LEAKY_SLOPE), x.shape)
            case "HardSigmoid":
                return Tensor(self._node(kind, [x.name], name, alpha=1 / 6), x.shape)
            case _:
                return Tensor(self._node(kind, [x.name], name), x.shape)

    def max_pool(
        self, x: Tensor, kernel: int, stride: int, *, pad: int = 0, pad_after: int | None = None
    ) -> Tensor:
        """The largest of each window; ``pad_after``: at the bottom and right, when it differs."""
        after = pad if pad_after is None else pad_after
        size = (x.shape[2] + pad + after - kernel) // stride + 1
        out = self._node(
            "MaxPool",
            [x.name],
            self._unique("pool"),
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[pad, pad, after, after],
        )
        return Tensor(out, (*x.shape[:2], size, size))

    def add(self, a: Tensor, b: Tensor, activation: str = "") -> Tensor:
        """A residual sum."""
        out = self._node("Add", [a.name, b.name], self._unique("add"))
        return self.activate(Tensor(out, a.shape), activation)

    def scale(self, x: Tensor, factors: Tensor) -> Tensor:
        """Each channel times its factor: float32[1, C, H, W] by float32[1, C, 1, 1]."""
        return Tensor(self._node("Mul", [x.name, factors.name], self._unique("scale")), x.shape)

    def concat(self, *parts: Tensor) -> Tensor:
        """Channels behind one another."""
        out = self._node("Concat", [p.name for p in parts], self._unique("concat"), axis=1)
        return Tensor(out, (1, sum(p.shape[1] for p in parts), *parts[0].shape[2:]))

    def halves(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The first half of the channels, and the second."""
        names = [self._unique("half"), self._unique("half")]
        self._nodes.append(helper.make_node("Split", [x.name], names, names[0], axis=1))
        shape = (1, x.shape[1] // 2, *x.shape[2:])
        return Tensor(names[0], shape), Tensor(names[1], shape)

    def shuffle(self, x: Tensor) -> Tensor:
        """Channels of the two halves in turns."""
        name, (_, channels, height, width) = self._unique("shuffle"), x.shape
        shapes = ((1, 2, channels // 2, height, width), x.shape)
        apart, back = (
            self._constant(f"{name}/{n}", np.array(shape)) for n, shape in enumerate(shapes)
        )
        out = self._node("Reshape", [x.name, apart], f"{name}/apart")
        out = self._node("Transpose", [out], f"{name}/turned", perm=[0, 2, 1, 3, 4])
        return Tensor(self._node("Reshape", [out, back], name), x.shape)

    def average(self, x: Tensor) -> Tensor:
        """float32[1, C, 1, 1] of float32[1, C, H, W]."""
        out = self._node("GlobalAveragePool", [x.name], self._unique("average"))
        return Tensor(out, (*x.shape[:2], 1, 1))

    def global_average(self, x: Tensor) -> Tensor:
        """float32[1, C] of float32[1, C, H, W]."""
        return self.flatten(self.average(x))

    def flatten(self, x: Tensor) -> Tensor:
        """float32[1, N]."""
        out = self._node("Flatten", [x.name], self._unique("flatten"), axis=1)
        return Tensor(out, (1, int(np.prod(x.shape))))

    def dense(self, x: Tensor, channels: int, activation: str = "") -> Tensor:
        """A fully connected layer."""
        name = self._unique("dense")
        weights = self._weights(f"{name}/weights", (channels, x.shape[1]), GAINS[activation])
        bias = self._constant(f"{name}/bias", self._uniform(channels, -0.1, 0.1))
        out = self._node("Gemm", [x.name, weights, bias], name, transB=1)
        return self.activate(Tensor(out, (1, channels)), activation)

    def model(self, output: Tensor) -> onnx.ModelProto:
        """The model from ``image`` to ``output``."""
        graph = helper.make_graph(
            self._nodes,
            self._name,
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, self.image().shape)],
            [helper.make_tensor_value_info(output.name, TensorProto.FLOAT, output.shape)],
            self._constants,
        )
        kinds = {node.op_type for node in self._nodes}
        version = HARD_SWISH_OPSET if "HardSwish" in kinds else OPSET
        opset = [helper.make_opsetid("", version)]
        return helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION)

    def _batch_norm(self, x: Tensor) -> Tensor:
        channels = x.shape[1]
        statistics = {"scale": (0.8, 1.2), "bias": (-0.1, 0.1), "mean": (-0.1, 0.1)}
        statistics["variance"] = (0.8, 1.2)
        name = f"{x.name}/normalized"
        inputs = [
            self._constant(f"{name}/{key}", self._uniform(channels, *limits))
            for key, limits in statistics.items()
        ]
        return Tensor(self._node("BatchNormalization", [x.name, *inputs], name), x.shape)

    def _weights(self, name: str, shape: tuple[int, ...], gain: float) -> str:
        spread = np.float32(np.sqrt(gain / np.prod(shape[1:])))
        return self._constant(name, self._rng.standard_normal(shape, np.float32) * spread)

    def _uniform(self, count: int, low: float, high: float) -> NDArray[np.float32]:
        return self._rng.uniform(low, high, count).astype(np.float32)

    def _constant(self, name: str, array: NDArray | np.float32) -> str:
        self._constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def _node(self, kind: str, inputs: list[str], name: str, **attributes: object) -> str:
        self._nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def _unique(self, name: str) -> str:
        self._names[name] = self._names.get(name, 0) + 1
        return f"{name}{self._names[name]}"
