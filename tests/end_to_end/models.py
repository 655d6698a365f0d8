"""Small int8 QDQ networks with random weights, and what ONNX Runtime makes of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

__all__ = ["Network", "Tensor", "random_network", "reference", "references"]

Array = NDArray[np.generic]


@dataclass(frozen=True)
class Tensor:
    """A quantised tensor of the model: its name once dequantised, NCHW shape, scale, zero point."""

    name: str
    shape: tuple[int, ...]
    scale: float
    zero_point: int


@dataclass
class Network:
    """Builds a model layer by layer; every float tensor is quantised at once."""

    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    count: int = 0
    inputs: list[Tensor] = field(default_factory=list)

    def input(self, channels: int, height: int, width: int, name: str = "x") -> Tensor:
        """An int8 input of the model."""
        zero_point = int(self.rng.integers(-30, 30))
        tensor = Tensor(name, (1, channels, height, width), 0.05, zero_point)
        self.inputs.append(tensor)
        return self._dequantized(name, tensor)

    def conv(
        self,
        x: Tensor,
        channels: int,
        kernel: tuple[int, int] = (3, 3),
        *,
        strides: tuple[int, int] = (1, 1),
        pads: tuple[int, int, int, int] = (0, 0, 0, 0),
        depthwise: bool = False,
        activation: str = "",
    ) -> Tensor:
        """A convolution, one weight scale a channel; ``activation``: "", Relu or Clip (0 to 6)."""
        groups = x.shape[1] if depthwise else 1
        weights = self.rng.integers(-127, 128, (channels, x.shape[1] // groups, *kernel), np.int8)
        spread = np.sqrt(weights[0].size) * 74 * x.scale
        scales = self.rng.uniform(0.5, 1.5, channels).astype(np.float32) / np.float32(spread)
        bias = self.rng.integers(-3000, 3000, channels).astype(np.int32)
        w = self._weights(weights, scales)
        b = self._weights(bias, scales * np.float32(x.scale))
        height, width = (
            (size + before + after - k) // stride + 1
            for size, before, after, k, stride in zip(
                x.shape[2:], pads[:2], pads[2:], kernel, strides, strict=True
            )
        )
        name = self._node(
            "Conv", [x.name, w, b], strides=strides, pads=pads, group=groups, kernel_shape=kernel
        )
        if activation == "Relu":
            name = self._node("Relu", [name])
        elif activation == "Clip":
            limits = [self._constant(np.float32(value)) for value in (0, 6)]
            name = self._node("Clip", [name, *limits])
        low = -128 if activation else int(self.rng.integers(-20, 20))
        return self._quantized(name, (1, channels, height, width), 0.06, low)

    def dense(self, x: Tensor, channels: int) -> Tensor:
        """Flatten, and a fully connected layer."""
        size = int(np.prod(x.shape))
        flat = self._node("Flatten", [x.name], axis=1)
        weights = self.rng.integers(-127, 128, (channels, size), np.int8)
        scale = np.float32(1 / (np.sqrt(size) * 74 * x.scale))
        bias = self.rng.integers(-3000, 3000, channels).astype(np.int32)
        w = self._weights(weights, np.full(channels, scale))
        b = self._weights(bias, np.full(channels, scale * np.float32(x.scale)))
        name = self._node("Gemm", [flat, w, b], transB=1)
        return self._quantized(name, (1, channels), 0.05, 3)

    def add(self, a: Tensor, b: Tensor, *, relu: bool = False) -> Tensor:
        """A residual sum."""
        name = self._node("Add", [a.name, b.name])
        if relu:
            name = self._node("Relu", [name])
        return self._quantized(name, a.shape, 0.09, -128 if relu else 5)

    def multiply(self, a: Tensor, b: Tensor) -> Tensor:
        """A product; ``b`` may be smaller."""
        name = self._node("Mul", [a.name, b.name])
        return self._quantized(name, a.shape, 0.0713, -11)

    def concat(self, *parts: Tensor) -> Tensor:
        """Channels one after the other."""
        first = parts[0]
        channels = sum(part.shape[1] for part in parts)
        name = self._node("Concat", [part.name for part in parts], axis=1)
        shape = (1, channels, *first.shape[2:])
        return self._quantized(name, shape, first.scale, first.zero_point)

    def part(self, x: Tensor, first: int, channels: int) -> Tensor:
        """Some channels."""
        limits = [
            self._constant(np.array([each], np.int64)) for each in (first, first + channels, 1)
        ]
        name = self._node("Slice", [x.name, *limits])
        return self._quantized(name, (1, channels, *x.shape[2:]), x.scale, x.zero_point)

    def resize(self, x: Tensor, down: int, across: int) -> Tensor:
        """Each pixel again and again."""
        scales = self._constant(np.array([1, 1, down, across], np.float32))
        name = self._node(
            "Resize",
            [x.name, "", scales],
            mode="nearest",
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
        shape = (*x.shape[:2], x.shape[2] * down, x.shape[3] * across)
        return self._quantized(name, shape, x.scale, x.zero_point)

    def max_pool(
        self, x: Tensor, size: int, stride: int, pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    ) -> Tensor:
        """The largest of each window."""
        height, width = (
            (n + before + after - size) // stride + 1
            for n, before, after in zip(x.shape[2:], pads[:2], pads[2:], strict=True)
        )
        name = self._node(
            "MaxPool",
            [x.name],
            kernel_shape=(size, size),
            strides=(stride, stride),
            pads=pads,
        )
        return self._quantized(name, (*x.shape[:2], height, width), x.scale, x.zero_point)

    def average_pool(self, x: Tensor, size: int) -> Tensor:
        """The average of each window; windows do not overlap."""
        shape = (*x.shape[:2], x.shape[2] // size, x.shape[3] // size)
        name = self._node("AveragePool", [x.name], kernel_shape=(size, size), strides=(size, size))
        return self._quantized(name, shape, 0.8 * x.scale, -7)

    def global_average(self, x: Tensor) -> Tensor:
        """The average of each channel."""
        name = self._node("GlobalAveragePool", [x.name])
        return self._quantized(name, (*x.shape[:2], 1, 1), 0.7 * x.scale, 9)

    def unary(self, x: Tensor, kind: str) -> Tensor:
        """A function of each element: Sigmoid, HardSigmoid, Tanh, HardSwish."""
        scale, zero_point = {
            "Sigmoid": (1 / 256, -128),
            "HardSigmoid": (1 / 255, -128),
            "Tanh": (1 / 128, 0),
        }.get(kind, (0.05, -60))
        return self._quantized(self._node(kind, [x.name]), x.shape, scale, zero_point)

    def model(self, *outputs: Tensor) -> onnx.ModelProto:
        """The model, ``outputs`` being its int8 outputs."""
        read = {name for node in self.nodes for name in node.input}
        quantized = {node.output[0]: node.input[0] for node in self.nodes}
        ends = {output.name for output in outputs} - read
        graph = helper.make_graph(
            [node for node in self.nodes if node.output[0] not in ends],
            "network",
            [_info(tensor.name, tensor.shape) for tensor in self.inputs],
            [_info(quantized[output.name], output.shape) for output in outputs],
            self.constants,
        )
        opset = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=9)
        onnx.checker.check_model(model)
        return model

    def _node(self, kind: str, inputs: list[str], **attributes: object) -> str:
        self.count += 1
        name = f"{kind.lower()}{self.count}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def _constant(self, array: Array) -> str:
        self.count += 1
        name = f"constant{self.count}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def _weights(self, values: Array, scales: Array) -> str:
        zeros = np.zeros(len(scales), values.dtype)
        inputs = [
            self._constant(values),
            self._constant(scales.astype(np.float32)),
            self._constant(zeros),
        ]
        return self._node("DequantizeLinear", inputs, axis=0)

    def _dequantized(self, name: str, tensor: Tensor) -> Tensor:
        inputs = [
            name,
            self._constant(np.float32(tensor.scale)),
            self._constant(np.int8(tensor.zero_point)),
        ]
        real = self._node("DequantizeLinear", inputs)
        return Tensor(real, tensor.shape, tensor.scale, tensor.zero_point)

    def _quantized(
        self, name: str, shape: tuple[int, ...], scale: float, zero_point: int
    ) -> Tensor:
        inputs = [name, self._constant(np.float32(scale)), self._constant(np.int8(zero_point))]
        quantized = self._node("QuantizeLinear", inputs)
        return self._dequantized(quantized, Tensor(quantized, shape, scale, zero_point))


def _info(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT8, shape)


def random_network(seed: int) -> onnx.ModelProto:
    """A network of random layers: strides, halos, residual sums, pools, functions."""
    rng = np.random.default_rng(seed)
    net = Network(rng)
    x = net.input(int(rng.integers(1, 7)), *(int(n) for n in rng.integers(7, 13, 2)))
    x = net.conv(x, int(rng.integers(1, 11)), pads=(1, 1, 1, 1))
    for _ in range(int(rng.integers(1, 6))):
        x = _random_layer(net, x, rng)
    if rng.random() < 0.5:
        x = net.dense(net.global_average(x), int(rng.integers(1, 12)))
    return net.model(x)


def _random_layer(net: Network, x: Tensor, rng: np.random.Generator) -> Tensor:
    activation = ("", "Relu", "Clip")[int(rng.integers(3))]
    channels = int(rng.integers(1, 11))
    small = min(x.shape[2:]) < 4
    match int(rng.integers(0, 8)):
        case 0:
            return net.conv(x, channels, (1, 1), activation=activation)
        case 1:
            return net.conv(x, x.shape[1], pads=(1, 1, 1, 1), depthwise=True, activation=activation)
        case 2:
            stride = 1 if small else 2
            pads = (0, 0, 1, 1) if rng.random() < 0.5 else (1, 1, 1, 1)
            return net.conv(x, channels, strides=(stride, stride), pads=pads, activation=activation)
        case 3:
            inner = net.conv(x, x.shape[1], pads=(1, 1, 1, 1), activation=activation)
            return net.add(x, inner, relu=bool(rng.integers(2)))
        case 4 if not small:
            return net.max_pool(x, 3, 2, (1, 1, 1, 1))
        case 5 if not small:
            return net.average_pool(x, 2)
        case 6:
            return net.unary(x, ("Sigmoid", "Tanh")[int(rng.integers(2))])
        case _:
            kernel = (1, 3) if rng.random() < 0.5 else (3, 1)
            pads = (kernel[0] // 2, kernel[1] // 2) * 2
            return net.conv(x, channels, kernel, pads=pads, activation=activation)


def reference(model: onnx.ModelProto, x: NDArray[np.generic], *, integers: bool = False) -> Array:
    """The output of ONNX Runtime for the one input ``x``; as ``references``."""
    (output,) = references(model, {"x": x}, integers=integers)
    return output


def references(
    model: onnx.ModelProto, inputs: Mapping[str, Array], *, integers: bool = False
) -> list[Array]:
    """The outputs of ONNX Runtime; ``integers``: of its integer operators, which of products alone
    give other bytes than float32.
    """
    options = onnxruntime.SessionOptions()
    if integers:
        options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(inputs))
