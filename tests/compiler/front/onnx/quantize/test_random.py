"""Random float networks: quantised, they are near, all integer, and the same bytes everywhere."""

from dataclasses import dataclass, field

import numpy as np
import onnx
import pytest
from onnx import helper

from dovetail.compiler import compile
from dovetail.compiler.front.onnx.quantize import Method, QuantizeOptions, quantize_model
from dovetail.compiler.graph.ir import Array
from dovetail.runtime import run

from .floats import onnx_runtime, small_model
from .kept_models import check_model


@dataclass
class Drawing:
    """A network that grows node by node; ``x``: name and shape of the last tensor."""

    rng: np.random.Generator
    x: tuple[str, tuple[int, ...]]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)

    def node(self, kind: str, inputs: list[str], shape: tuple[int, ...], **more: object) -> None:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **more))
        self.x = (name, shape)

    def constant(self, shape: tuple[int, ...], scale: float, offset: float = 0.0) -> str:
        name = f"k{len(self.constants)}"
        values = offset + scale * self.rng.standard_normal(shape)
        self.constants[name] = values.astype(np.float32)
        return name

    def conv(self, channels: int, kernel: int, stride: int = 1, groups: int = 1) -> None:
        name, (_, inputs, height, width) = self.x
        shape = (channels, inputs // groups, kernel, kernel)
        weights = self.constant(shape, 1.4 / np.sqrt(np.prod(shape[1:])))
        names = [name, weights]
        if self.rng.random() < 0.7:
            names.append(self.constant((channels,), 0.2))
        pad = kernel // 2
        size = ((n + 2 * pad - kernel) // stride + 1 for n in (height, width))
        more = {"pads": [pad] * 4, "strides": [stride] * 2, "group": groups}
        self.node("Conv", names, (1, channels, *size), **more)

    def layer(self) -> None:
        """One of what networks are made of."""
        name, shape = self.x
        small = min(shape[2:]) < 4
        channels = int(self.rng.integers(2, 10))
        match int(self.rng.integers(0, 10)):
            case 0:
                self.conv(channels, 1)
            case 1:
                self.conv(channels, 3, 1 if small else 2)
            case 2:
                self.conv(shape[1], 3, groups=shape[1])
            case 3:
                self.conv(shape[1], 3)
                self.activation()
                self.node("Add", [name, self.x[0]], shape)
            case 4 if not small:
                size = (*shape[:2], shape[2] // 2, shape[3] // 2)
                self.node("MaxPool", [name], size, kernel_shape=[2, 2], strides=[2, 2])
            case 5:
                self.conv(channels, 3)
                spread = self.constant((channels,), 0.1, 1.0), self.constant((channels,), 0.1)
                names = [*spread, self.constant((channels,), 0.1), self.constant((channels,), 0, 1)]
                self.node("BatchNormalization", [self.x[0], *names], self.x[1])
            case 6:
                shift = self.constant((shape[1], 1, 1), 0.2)
                self.conv(shape[1], 1)
                self.node("Add", [self.x[0], shift], shape)
            case 7:
                self.node("Sigmoid", [name], shape)
                self.node("Mul", [name, self.x[0]], shape)
            case 8:
                self.conv(channels, 3)
                self.activation()
                joined = (1, shape[1] + channels, *shape[2:])
                self.node("Concat", [name, self.x[0]], joined, axis=1)
            case _:
                self.conv(channels, 3)
        self.activation()

    def activation(self) -> None:
        """Often one, of several kinds."""
        name, shape = self.x
        match int(self.rng.integers(0, 7)):
            case 0 | 1:
                self.node("Relu", [name], shape)
            case 2:
                limits = [self.constant((), 0, limit) for limit in (0.0, 2.0)]
                self.node("Clip", [name, *limits], shape)
            case 3:
                self.node("LeakyRelu", [name], shape, alpha=0.2)
            case 4:
                self.node("Tanh", [name], shape)
            case _:
                pass

    def head(self) -> None:
        """Perhaps a dense layer, in one of the ways to write it."""
        name, shape = self.x
        classes = int(self.rng.integers(2, 9))
        if self.rng.random() < 0.5:
            self.node("GlobalAveragePool", [name], (*shape[:2], 1, 1))
        name, shape = self.x
        count = int(np.prod(shape))
        self.node("Flatten", [name], (1, count))
        flat = self.x[0]
        if self.rng.random() < 0.5:
            names = [
                self.constant((classes, count), 1 / np.sqrt(count)),
                self.constant((classes,), 1),
            ]
            self.node("Gemm", [flat, *names], (1, classes), transB=1)
        else:
            self.node("MatMul", [flat, self.constant((count, classes), 0.2)], (1, classes))
            self.node("Add", [self.x[0], self.constant((classes,), 0.3)], (1, classes))


def drawn(seed: int) -> onnx.ModelProto:
    rng = np.random.default_rng(seed)
    shape = (1, int(rng.integers(1, 5)), *(int(n) for n in rng.integers(8, 13, 2)))
    drawing = Drawing(rng, ("x", shape))
    drawing.conv(int(rng.integers(3, 9)), 3)
    drawing.activation()
    for _ in range(int(rng.integers(1, 6))):
        drawing.layer()
    if rng.random() < 0.6:
        drawing.head()
    if drawing.nodes[-1].op_type != "Conv":
        drawing.node("Identity", [drawing.x[0]], drawing.x[1])
    return small_model(drawing.nodes, shape, drawing.constants, outputs=(drawing.x[0],))


@pytest.mark.parametrize("seed", range(25))
def test_random_networks(seed: int) -> None:
    model = drawn(seed)
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    rng = np.random.default_rng(seed)
    samples = [rng.standard_normal(shape, np.float32) for _ in range(6)]
    options = QuantizeOptions(list(Method)[seed % len(Method)], unsigned=bool(seed % 2))
    found = quantize_model(model, [{"x": sample} for sample in samples], options)
    assert found.kept == ()
    check_model(found)
    x = samples[0]
    (expected,), (value,) = onnx_runtime(model, x), onnx_runtime(found.model, x)
    error = np.linalg.norm(value - expected) / np.linalg.norm(expected)
    assert error < 0.12
    (interpreted,) = run(compile(found.model, "cpu"), {"x": x}, "cpu").outputs.values()
    np.testing.assert_array_equal(interpreted, value)
    if any(node.op_type == "Concat" for node in model.graph.node):
        return  # the accelerator joins blocks of channels only
    (simulated,) = run(compile(found.model, "vta:zynq7020"), {"x": x}).outputs.values()
    np.testing.assert_array_equal(simulated, value)
