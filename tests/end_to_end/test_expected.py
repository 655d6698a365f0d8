"""What the compiler expects of a program, held against the simulator."""

from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.compiler.options import CompileOptions, Overlap
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.module import Module
from dovetail.runtime.profile.layers import share_cycles

from .models import Network

MODELS = Path(__file__).resolve().parents[3] / "shared" / "models"
REAL = (
    "mlperf_tiny/ic_resnet8_int8.onnx",
    "mlperf_tiny/vww_mbv1_int8.onnx",
    "mlperf_tiny/kws_dscnn_int8.onnx",
    "mobilenet_v1/mobilenet_v1_0.25_128_uint8.onnx",
    "mobilenet_v2/mobilenet_v2_int8.onnx",
)


def assert_as_expected(module: Module) -> None:
    """Every layer, and the whole, took the cycles that were expected."""
    (tensor,) = module.inputs
    result = run(module, {tensor.name: np.zeros(tensor.shape, tensor.dtype)}, device="sim")
    part = accelerator_part(module)
    assert result.cycles == part.expected_cycles
    layers = part.layers
    found = share_cycles(result.timeline, len(layers), result.cycles)
    assert [layer.expected_cycles for layer in layers] == found


@pytest.mark.parametrize("name", REAL)
def test_cycles_are_as_expected_layer_by_layer(name: str) -> None:
    path = MODELS / name
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    assert_as_expected(compile(path, "vta:zynq7020"))


@pytest.mark.parametrize("overlap", Overlap)
@pytest.mark.parametrize("config", ["zynq7020", "ecp5_85", "large"])
def test_cycles_of_streamed_convolutions_are_as_expected(config: str, overlap: Overlap) -> None:
    net = Network(np.random.default_rng(0))
    x = net.conv(net.input(16, 56, 56), 64, pads=(1, 1, 1, 1), activation="Relu")
    y = net.conv(x, 64, pads=(1, 1, 1, 1), activation="Relu")
    x = net.add(net.conv(y, 64, pads=(1, 1, 1, 1)), x, relu=True)
    x = net.conv(x, 128, strides=(2, 2), pads=(1, 1, 1, 1))
    options = CompileOptions(overlap=overlap)
    assert_as_expected(compile(net.model(x), f"vta:{config}", options=options))
