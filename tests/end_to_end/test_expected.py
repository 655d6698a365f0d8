"""What the compiler expects of a program, held against the simulator."""

from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.runtime.module import Module
from dovetail.runtime.profile.layers import share_cycles

from .models import Network

MODELS = Path(__file__).resolve().parents[3] / "shared" / "models"
REAL = {
    "mlperf_tiny/ic_resnet8_int8.onnx": 0,
    "mlperf_tiny/vww_mbv1_int8.onnx": 0,
    "mlperf_tiny/kws_dscnn_int8.onnx": 0,
    "mobilenet_v1/mobilenet_v1_0.25_128_uint8.onnx": 4,
    "mobilenet_v2/mobilenet_v2_int8.onnx": 8,
}
"""Layers whose cycles may be further from those expected: of those that run at once."""
NEAR, FEW = 0.05, 32
"""Part of a layer's cycles, and cycles (a wait for memory), that make no difference."""


def layers_off(module: Module) -> tuple[list[str], float]:
    """Layers that took other times than expected, and by how much the whole did."""
    (tensor,) = module.inputs
    result = module.run({tensor.name: np.zeros(tensor.shape, tensor.dtype)}, device="sim")
    assert result.cycles is not None
    layers = module.details["layers"]
    found = share_cycles(result.timeline, len(layers), result.cycles)
    off = [
        f"{layer['name']}: {layer['expected_cycles']} expected, {cycles} found"
        for layer, cycles in zip(layers, found, strict=True)
        if abs(layer["expected_cycles"] - cycles) > max(NEAR * cycles, FEW)
    ]
    return off, abs(module.details["expected_cycles"] / result.cycles - 1)


@pytest.mark.parametrize("name", REAL)
def test_cycles_are_as_expected_layer_by_layer(name: str) -> None:
    path = MODELS / name
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    off, whole = layers_off(compile(path, "vta:zynq7020"))
    assert len(off) <= REAL[name], off
    assert whole < 0.025


def test_cycles_of_streamed_convolutions_are_as_expected() -> None:
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(16, 56, 56), 64, pads=(1, 1, 1, 1), activation="Relu")
    y = net.conv(x, 64, pads=(1, 1, 1, 1), activation="Relu")
    x = net.add(net.conv(y, 64, pads=(1, 1, 1, 1)), x, relu=True)
    x = net.conv(x, 128, strides=(2, 2), pads=(1, 1, 1, 1))
    off, whole = layers_off(compile(net.model(x), "vta:zynq7020"))
    assert not off
    assert whole < 0.025
