"""Tensors that are added to a convolution's sums before these are quantised."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.ir import Graph
from dovetail.compiler.graph.operators.integer.residual import RequantizeAdd
from dovetail.compiler.graph.passes.integer_layers.recognition import integer_layers
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.translation.module import validate_module
from dovetail.isa.frozen import replace
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import AcceleratorPart
from tests.compiler.graph.passes.integer_layers.models import F32, Array, ModelBuilder, reference

from .programs import TINY

SOON = CompileOptions(effort=0)
SHAPE = (1, 10, 7, 5)
X = (F32(0.04), np.int8(-9))
SMALL = replace(TINY, name="small", act_depth=256, wgt_depth=32, acc_depth=64, par_depth=16)


class Net(ModelBuilder):
    """Adds quantised convolutions and tensors."""

    def again(self, x: str, scale: float = 0.05, zero_point: int = 4) -> str:
        """``x`` quantised and dequantised."""
        how = F32(scale), np.int8(zero_point)
        return self.dequantize(self.quantize(x, *how), *how)

    def conv(self, x: str, size: int = 1, groups: int = 1) -> str:
        """A convolution of float results, of ``x`` and as many channels."""
        rng, channels = np.random.default_rng(self.count), SHAPE[1]
        values = rng.integers(-90, 91, (channels, channels // groups, size, size)).astype(np.int8)
        scales = rng.uniform(0.004, 0.02, channels).astype(F32)
        zeros = self.constant(np.zeros(channels, np.int8))
        given = [self.constant(values), self.constant(scales), zeros]
        w = self.node("DequantizeLinear", given, axis=0)
        bias = self.constant(rng.normal(0, 0.3, channels).astype(F32))
        return self.node("Conv", [x, w, bias], pads=[size // 2] * 4, group=groups)

    def closed(self, y: str, scale: float = 0.06, zero_point: int = -20) -> onnx.ModelProto:
        """The model of ``x`` that ends with ``y`` quantised."""
        return self.build({"x": ("int8", SHAPE)}, self.quantize(y, scale, np.int8(zero_point)))


def plain(b: Net, x: str) -> str:
    """The sum of a pool and a convolution that comes before it in the model."""
    total = b.conv(b.again(b.conv(x, 3)))
    pool = b.again(b.node("MaxPool", [x], kernel_shape=[3, 3], pads=[1] * 4))
    return b.node("Relu", [b.node("Add", [pool, total])])


def of_its_own(b: Net, x: str) -> str:
    """The sum with the convolution's own input, and a table behind it."""
    y = b.again(b.node("Add", [b.conv(x, 3), x]), 0.06, -20)
    return b.node("LeakyRelu", [y], alpha=0.2)


def twice(b: Net, x: str) -> str:
    """Blocks one behind the other."""
    for _ in range(2):
        y = b.conv(b.again(b.node("Relu", [b.conv(x, 3)])))
        x = b.again(b.node("Add", [y, x]), 0.07, 11)
    return b.conv(x)


def given(seed: int = 0) -> dict[str, Array]:
    return {"x": np.random.default_rng(seed).integers(-128, 128, SHAPE).astype(np.int8)}


def layers_of(model: onnx.ModelProto) -> Graph:
    imported = open_model(model).to_graph_and_rest(batch=1)
    return integer_layers(imported.graph, imported.kinds).graph


@pytest.mark.parametrize("scale", [0.004, 0.05, 0.4])
def test_few_bytes_are_one_step_from_those_of_floats(scale: float) -> None:
    b = Net()
    total = b.conv(b.dequantize("x", *X), 3)
    other = b.again(b.conv(b.dequantize("x", *X)), scale)
    model = b.closed(b.node("Add", [total, other]))
    assert any(isinstance(node.operator, RequantizeAdd) for node in layers_of(model).nodes)
    wanted = reference(model, given()).astype(np.int16)
    (found,) = run(compile(model, "cpu"), given()).outputs.values()
    differs = np.abs(found - wanted)
    assert differs.max() <= 1
    assert np.count_nonzero(differs) <= 0.005 * differs.size * max(1, scale / 0.06)


@pytest.mark.parametrize(("net", "config"), [(plain, TINY), (of_its_own, SMALL), (twice, TINY)])
def test_it_is_one_launch_with_the_bytes_of_the_cpu(net: Callable[..., str], config: Any) -> None:
    b = Net()
    model = b.closed(net(b, b.dequantize("x", *X)))
    module = compile(model, config, SOON)
    assert [type(part) for part in module.parts] == [AcceleratorPart]
    results = [run(each, given()).outputs for each in (module, compile(model, "cpu"))]
    for one, other in zip(*(each.values() for each in results), strict=True):
        np.testing.assert_array_equal(one, other)
    assert all(part.found for part in validate_module(module, open_model(model)))


@pytest.mark.parametrize(
    ("config", "net", "reason"),
    [
        (replace(TINY, row_parameters=False), of_its_own, "no row_parameters"),
        (TINY, lambda b, x: b.node("Add", [b.conv(x, 3, 10), b.again(x)]), "of groups"),
        (TINY, lambda b, x: b.node("Add", [b.node("Relu", [b.conv(x)]), x]), "clipped"),
        (
            TINY,
            lambda b, x: b.node("Add", [b.conv(x), b.again(x, 1e-5)]),
            "required at least",
        ),
    ],
)
def test_what_keeps_it_off_is_told(config: Any, net: Callable[..., str], reason: str) -> None:
    b = Net()
    y = b.again(net(b, b.again(b.conv(b.dequantize("x", *X)))), 0.06, -20)
    module = compile(b.closed(b.conv(y)), config, SOON)
    assert any(reason in (each.reason or "") for each in module.placement)
