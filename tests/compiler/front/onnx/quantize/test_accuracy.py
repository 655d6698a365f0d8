"""Trained networks on real pictures: quantised, they name what the float networks name."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.compiler.front.onnx.quantize import Method, QuantizeOptions, quantize_model
from dovetail.compiler.graph.ir import Array
from dovetail.runtime import run

from .floats import onnx_runtime, onnx_runtime_session
from .pictures import read_png

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)
"""By which the pictures of ResNet-20 were normalised when it was trained."""
DIGITS = Path(__file__).resolve().parents[5] / "examples" / "digits" / "digits.onnx"


def load(folder: Path, name: str) -> onnx.ModelProto:
    path = folder / name
    if not path.is_file():
        pytest.skip(f"no ../shared/models/{name}")
    return onnx.load(path)


def scores(model: onnx.ModelProto, pictures: Array) -> Array:
    """float32[N, classes], by ONNX Runtime."""
    run_one = onnx_runtime_session(model)
    return np.concatenate([run_one(picture)[0] for picture in pictures])


def quantized(model: onnx.ModelProto, pictures: Array, method: Method) -> onnx.ModelProto:
    name = model.graph.input[0].name
    samples = [{name: picture} for picture in pictures]
    found = quantize_model(model, samples, QuantizeOptions(method))
    assert found.kept == ()
    return found.model


def check_simulator(model: onnx.ModelProto, picture: Array) -> None:
    """The accelerator gives the bytes of ONNX Runtime."""
    module = compile(model, "vta:zynq7020")
    (found,) = run(module, {model.graph.input[0].name: picture}).outputs.values()
    np.testing.assert_array_equal(found, onnx_runtime(model, picture)[0])


@pytest.fixture(scope="module")
def cifar(shared_models: Path) -> Array:
    """uint8[N, 32, 32, 3]: the real pictures among the golden inputs of ResNet-8."""
    path = shared_models / "mlperf_tiny" / "ic_resnet8_int8.golden.npz"
    if not path.is_file():
        pytest.skip(f"no ../shared/models/mlperf_tiny/{path.name}")
    with np.load(path) as golden:
        pictures = golden["input"][: int(golden["real"])].astype(np.int64) + 128
    return pictures.astype(np.uint8).reshape(-1, 32, 32, 3)


@pytest.mark.parametrize("method", Method)
def test_mnist_names_every_digit(shared_models: Path, method: Method) -> None:
    model = load(shared_models, "mnist/mnist.onnx")
    files = [shared_models / "mnist" / f"mnist_sample{digit}.png" for digit in range(10)]
    digits = np.stack([read_png(file)[None, None, :, :, 0] for file in files]).astype(np.float32)
    result = quantized(model, digits, method)
    assert scores(result, digits).argmax(axis=1).tolist() == list(range(10))
    if method is Method.MINMAX:
        check_simulator(result, digits[3])


@pytest.mark.parametrize("method", Method)
def test_resnet20_agrees_with_the_float_network(
    shared_models: Path, cifar: Array, method: Method
) -> None:
    model = load(shared_models, "cifar/resnet20_cifar10.onnx")
    pictures = (cifar.astype(np.float32) / 255 - MEAN) / DEVIATION
    pictures = np.ascontiguousarray(pictures.transpose(0, 3, 1, 2))[:, None]
    expected = scores(model, pictures)
    result = quantized(model, pictures[:12], method)
    found = scores(result, pictures)
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).mean() >= 0.9
    error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert error < (0.08 if method is Method.MINMAX else 0.12)
    if method is Method.MINMAX:
        check_simulator(result, pictures[0])


@pytest.mark.parametrize("method", Method)
def test_resnet8_agrees_with_the_float_network(
    shared_models: Path, cifar: Array, method: Method
) -> None:
    model = load(shared_models, "mlperf_tiny/ic_resnet8_fp32.onnx")
    pictures = cifar.astype(np.float32)[:, None]
    expected = scores(model, pictures).argmax(axis=1)
    result = quantized(model, pictures[:12], method)
    assert (scores(result, pictures).argmax(axis=1) == expected).mean() >= 0.9
    if method is Method.MINMAX:
        check_simulator(result, pictures[0])


def test_the_digits_lose_at_most_three_in_a_thousand() -> None:
    """The float network of the example, calibrated on training scans, judged on the test split."""
    pytest.importorskip("sklearn", reason="no scikit-learn")
    from digits.data import load as load_digits

    digits, model = load_digits(), onnx.load(DIGITS)
    train, test = (
        np.ascontiguousarray(images.transpose(0, 3, 1, 2))[:, None]
        for images in (digits.train_images, digits.test_images)
    )
    samples = [{"image": image} for image in train[:64]]
    right = (scores(model, test).argmax(axis=1) == digits.test_labels).mean()
    assert right == pytest.approx(0.9889, abs=1e-4)
    for options in (
        QuantizeOptions(),
        QuantizeOptions(Method.MSE, equalize=True, correct_bias=True, adaptive=True, held=8),
    ):
        found = scores(quantize_model(model, samples, options).model, test).argmax(axis=1)
        assert (found == digits.test_labels).mean() >= right - 0.003
