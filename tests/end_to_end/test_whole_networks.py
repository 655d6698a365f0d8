"""Whole networks: photographs on MobileNetV2, ResNet-18 at full size, MLPerf Tiny on the RTL."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from networks import calibration_images

from dovetail.compiler import compile
from dovetail.runtime import run
from dovetail.runtime.module import Module

from ..once import short_searches

MLPERF_TINY = ("ic_resnet8_int8", "kws_dscnn_int8")
"""``make rtl-networks`` runs all four."""

MOST_CYCLES = {"resnet18": 7_900_000, "mobilenet_v2": 1_540_000}
"""On zynq7020, at 224x224."""


def golden(folder: Path, name: str) -> Path:
    """The model; skips when it or its golden outputs are absent."""
    path = folder / f"{name}.onnx"
    for each in (path, path.with_suffix(".golden.npz")):
        if not each.is_file():
            pytest.skip(f"no ../shared/models/{each.relative_to(folder)}")
    return path


def test_mobilenet_v2_names_photographs_as_onnx_runtime_does(shared_models: Path) -> None:
    path = golden(shared_models, "mobilenet_v2/mobilenet_v2_int8")
    module = compile(path, "vta:zynq7020")
    (signature,) = module.inputs
    labels = (path.parent / "labels.txt").read_text(encoding="utf-8").splitlines()
    said = {}
    with np.load(path.with_suffix(".golden.npz")) as arrays:
        inputs, wanted = arrays["input"], arrays["onnxruntime"]
        files = arrays["names"].tolist()
    for file, x, y in zip(files, inputs, wanted, strict=True):
        result = run(module, {signature.name: x.reshape(signature.shape)})
        (output,) = result.outputs.values()
        np.testing.assert_array_equal(output.reshape(y.shape), y)
        assert result.cycles is not None
        assert result.cycles <= MOST_CYCLES["mobilenet_v2"]
        said[file] = labels[int(output.argmax())]
    assert said["cat.bmp"] == "Egyptian cat"
    assert said["parrot.jpg"] == "macaw"
    assert said["hot_dog.jpg"].startswith("hotdog")
    assert said["dragonfly.bmp"].startswith("dragonfly")
    assert len(said) == 6


def test_resnet18_at_full_size_gives_the_bytes_of_onnx_runtime(
    resnet18_model: onnx.ModelProto, resnet18_module: Module
) -> None:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(
        resnet18_model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    x = calibration_images(3, 224)[2:]
    result = run(resnet18_module, {"image": x})
    (output,) = result.outputs.values()
    np.testing.assert_array_equal(output, session.run(None, {"image": x})[0])
    assert result.macs == 1_814_073_344
    assert result.cycles is not None
    assert result.cycles <= MOST_CYCLES["resnet18"]


@pytest.mark.parametrize("name", MLPERF_TINY)
def test_mlperf_tiny_runs_on_the_rtl_as_on_the_simulator(shared_models: Path, name: str) -> None:
    path = golden(shared_models, f"mlperf_tiny/{name}")
    with short_searches():
        module = compile(path, "vta:tiny")
    (signature,) = module.inputs
    with np.load(path.with_suffix(".golden.npz")) as arrays:
        x, y = arrays["input"][0], arrays["onnxruntime"][0]
    inputs = {signature.name: x.reshape(signature.shape)}
    simulated, real = (run(module, inputs, device) for device in ("sim", "rtl"))
    for result in (simulated, real):
        (output,) = result.outputs.values()
        np.testing.assert_array_equal(output.reshape(y.shape), y)
    assert simulated.cycles == real.cycles
    assert simulated.counters == real.counters
