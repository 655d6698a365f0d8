"""Quantised networks: ONNX Runtime takes them and computes in integers what the compiler does."""

import collections
import functools

import numpy as np
import onnx
import onnxruntime
import pytest
from networks import Options, build, calibration_images

from dovetail.compiler import compile
from dovetail.compiler.front.onnx.quantize import Method, QuantizeOptions, quantize_model
from dovetail.compiler.graph.ir import Array
from dovetail.runtime import run

SMALL = Options(size=32, classes=10, width=0.25, batch_norm=True)
NAMES = ("resnet18", "resnet50", "mobilenet_v1", "mobilenet_v2", "squeezenet", "vgg11", "tiny_yolo")
MORE_INTEGER = {"Flatten", "MaxPool", "NhwcMaxPool", "QGemm", "Transpose"}
"""Operators that compute in integers without QLinear in their names, or move elements only."""


@functools.cache
def small(name: str, options: QuantizeOptions | None = None) -> onnx.ModelProto:
    """The network of 32x32 images, a quarter as wide, quantised."""
    samples = [{"image": image[None]} for image in calibration_images(4, SMALL.size)]
    return quantize_model(build(name, SMALL), samples, options).model


def onnx_runtime(model: onnx.ModelProto, x: Array, optimized: str = "") -> Array:
    """Its output; the graph it runs is written to ``optimized``."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.log_severity_level = 3
    options.optimized_model_filepath = optimized
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"image": x})[0]


@pytest.mark.parametrize(
    ("name", "unsigned"),
    [*((name, False) for name in NAMES), ("resnet18", True), ("mobilenet_v2", True)],
)
def test_every_layer_becomes_integer_and_the_bytes_are_onnx_runtimes(
    name: str, unsigned: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    model = small(name, QuantizeOptions(unsigned=unsigned))
    path = tmp_path_factory.mktemp("optimized") / "model.onnx"
    x = calibration_images(1, SMALL.size, seed=9)
    expected = onnx_runtime(model, x, str(path))
    kinds = collections.Counter(node.op_type for node in onnx.load(path).graph.node)
    assert kinds.pop("QuantizeLinear") == 1
    assert kinds.pop("DequantizeLinear") == 1
    assert all(k in MORE_INTEGER or k.startswith("QLinear") for k in kinds), kinds
    (found,) = run(compile(model, "cpu"), {"image": x}, "cpu").outputs.values()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("method", Method)
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_results_stay_near_the_float_network(name: str, method: Method) -> None:
    model = small(name, QuantizeOptions(method))
    x = calibration_images(1, SMALL.size, seed=9)
    expected = onnx_runtime(build(name, SMALL), x).ravel()
    found = onnx_runtime(model, x).ravel()
    cosine = found @ expected / np.linalg.norm(found) / np.linalg.norm(expected)
    assert cosine > 0.99


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "squeezenet", "tiny_yolo"])
def test_the_simulator_computes_the_same(name: str) -> None:
    model = small(name)
    x = calibration_images(1, SMALL.size, seed=9)
    (found,) = run(compile(model, "vta:zynq7020"), {"image": x}).outputs.values()
    np.testing.assert_array_equal(found, onnx_runtime(model, x))
