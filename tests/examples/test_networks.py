"""The synthetic networks have the published shapes, sizes and work, and activations in range."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from networks import NETWORKS, Options, bert_mini, build, calibration_images, calibration_tokens
from networks.builder import NetworkBuilder

ROOT = Path(__file__).resolve().parents[2]

PUBLISHED = {
    "resnet18": (1.814e9, 11_689_512),
    "resnet50": (4.089e9, 25_557_032),
    "mobilenet_v1": (569e6, 4_231_976),
    "mobilenet_v2": (300.8e6, 3_504_872),
    "squeezenet": (349e6, 1_235_496),
    "vgg11": (7.609e9, 132_863_336),
    "vgg16": (15.47e9, 138_357_544),
    "mobilenet_v3": (217e6, 5_483_032),
}
"""Multiply-accumulates at 224x224 and trained parameters: torchvision's model pages; MobileNetV1's
are the paper's and Keras's."""


def macs(model: onnx.ModelProto) -> int:
    """Multiply-accumulates of Conv and Gemm, by ONNX's own shape inference."""
    weights = {each.name: tuple(each.dims) for each in model.graph.initializer}
    inferred = onnx.shape_inference.infer_shapes(model)
    values = [*inferred.graph.value_info, *inferred.graph.output]
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in values}
    total = 0
    for node in model.graph.node:
        if node.op_type in ("Conv", "Gemm"):
            out, shape = shapes[node.output[0]], weights[node.input[1]]
            total += math.prod(out) * math.prod(shape[1:])
    return total


def parameters(model: onnx.ModelProto) -> int:
    """Values that training would find: no statistics of batch normalisation, no limits of Clip."""
    counted = [
        name
        for node in model.graph.node
        if node.op_type in ("Conv", "Gemm", "BatchNormalization")
        for name in node.input[1:3]
    ]
    sizes = {each.name: math.prod(each.dims) for each in model.graph.initializer}
    return sum(sizes[name] for name in counted)


def weights_without_values(
    builder: NetworkBuilder, name: str, shape: tuple[int, ...], gain: float
) -> str:
    """Instead of random ones: work and parameters are counted by shapes."""
    builder._constants.append(
        onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=shape)
    )
    return name


@pytest.mark.parametrize("name", PUBLISHED)
def test_work_and_parameters_are_the_published(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NetworkBuilder, "_weights", weights_without_values)
    model = build(name, Options(batch_norm=True))
    work, count = PUBLISHED[name]
    assert macs(model) == pytest.approx(work, rel=2e-3)
    assert parameters(model) == count


def test_transformers_have_the_published_parameters() -> None:
    """DeiT-Ti and the four layers of BERT-mini, by the code of their papers."""
    sizes = [math.prod(each.dims) for each in build("deit_tiny").graph.initializer]
    assert sum(size for size in sizes if size > 4) == 5_717_416
    tables = (30522 + 128 + 2) * 256
    sizes = [math.prod(each.dims) for each in bert_mini().graph.initializer]
    assert sum(size for size in sizes if size > 4) - tables == 3_159_040


def test_tiny_yolo_has_the_operations_that_darknet_prints() -> None:
    model = build("tiny_yolo", Options(size=416))
    assert 2 * macs(model) == pytest.approx(6.97e9, rel=2e-3)
    output = model.graph.output[0].type.tensor_type.shape.dim
    assert [each.dim_value for each in output] == [1, 125, 13, 13]


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_activations_stay_in_range(name: str, batch_norm: bool) -> None:
    options = Options(size=64, width=0.5, batch_norm=batch_norm)
    model = build(name, options)
    onnx.checker.check_model(model, full_check=True)
    computed = [node.output[0] for node in model.graph.node]
    outputs = {value.name for value in model.graph.output}
    model.graph.output.extend(
        onnx.helper.make_empty_tensor_value_info(each) for each in computed if each not in outputs
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_outputs()]
    values = session.run(names, {"image": calibration_images(1, 64, seed=3)})
    for each, value in zip(names, values, strict=True):
        assert 0.01 < value.std() < 8, each


def test_the_seed_decides_the_weights() -> None:
    first, again, other = (
        build("squeezenet", Options(size=32, seed=seed)).SerializeToString() for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize("given", [{"size": 100}, {"width": 0}, {"classes": 0}])
def test_options_that_make_no_network_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="required"):
        Options(**given)


def test_images_are_smooth_and_normalised() -> None:
    images = calibration_images(4, 64)
    assert images.shape == (4, 3, 64, 64)
    np.testing.assert_allclose(images.mean(axis=(2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(images.std(axis=(2, 3)), 1, atol=1e-4)
    steps = np.diff(images, axis=3)
    assert steps.std() < 1, "neighbours differ less than pixels at random"


def test_bert_keeps_its_rows_in_range() -> None:
    model = bert_mini(tokens=32)
    onnx.checker.check_model(model, full_check=True)
    given = {name: each[:1] for name, each in calibration_tokens(2, 32).items()}
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (hidden,) = session.run(None, given)
    assert hidden.shape == (1, 32, 256)
    np.testing.assert_allclose(hidden.std(), 1, atol=0.1)


def test_the_command_writes_the_files(tmp_path: Path) -> None:
    paths = [tmp_path / "net.onnx", tmp_path / "images.npz"]
    command = [sys.executable, "-m", "examples.networks", "squeezenet", "--size", "32"]
    subprocess.run([*command, "-o", paths[0], "--images", paths[1]], cwd=ROOT, check=True)
    onnx.checker.check_model(onnx.load(paths[0]))
    with np.load(paths[1]) as images:
        assert images["image"].shape == (8, 3, 32, 32)
