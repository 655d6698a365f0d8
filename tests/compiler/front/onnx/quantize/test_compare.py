"""The comparison of a quantised model with its float model, against ONNX Runtime's outputs."""

import numpy as np
import pytest
from networks import Options, build, calibration_images
from onnx import helper

from dovetail.compiler.errors import CalibrationError
from dovetail.compiler.front.onnx.quantize import compare, quantize_model
from dovetail.compiler.front.onnx.quantize.scales import activation_scale

from .floats import onnx_runtime, random, small_model


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_the_error_of_the_output_is_onnx_runtimes(name: str) -> None:
    model = build(name, Options(32, 10, 0.25, batch_norm=True))
    samples = [{"image": image[None]} for image in calibration_images(4, 32)]
    quantized = quantize_model(model, samples).model
    found = compare(model, quantized, samples)
    exact, rounded = (
        np.concatenate([onnx_runtime(each, sample["image"])[0] for sample in samples])
        for each in (model, quantized)
    )
    expected = np.linalg.norm(rounded - exact) / np.linalg.norm(exact)
    (output,) = found.outputs.values()
    assert output == pytest.approx(expected, rel=0.02)
    same = (rounded.argmax(axis=1) == exact.argmax(axis=1)).mean()
    assert abs(found.agreement - same) <= 0.25, "of rounding, one sample of four may differ"
    assert found.samples == 4
    assert all(0 < error < 0.3 for error in found.tensors.values())


def test_the_error_of_the_input_is_that_of_rounding() -> None:
    model = small_model(
        [helper.make_node("Conv", ["x", "w"], ["y"])], [1, 2, 6, 6], {"w": random((3, 2, 3, 3))}
    )
    x = random((1, 2, 6, 6), 4)
    found = compare(model, quantize_model(model, [{"x": x}]).model, [{"x": x}])
    scale = activation_scale((float(x.min()), float(x.max()))).scale
    rounded = np.rint(x / scale) * scale
    assert found.tensors["x"] == pytest.approx(
        np.linalg.norm(rounded - x) / np.linalg.norm(x), rel=0.05
    )
    assert list(found.outputs) == ["y"]
    with pytest.raises(CalibrationError, match="no samples to compare by"):
        compare(model, model, iter(()))
    with pytest.raises(CalibrationError, match="sample 0: no array for input 'x'; found 'y'"):
        compare(model, model, [{"y": x}])
