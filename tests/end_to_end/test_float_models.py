"""Real float models as machine code, against ONNX Runtime."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from networks import NETWORKS, Options, build

from dovetail.compiler.targets.cpu.executor.executor import Executor

from ..compiler.front.onnx.quantize.pictures import read_png
from .models import Array

TOLERANCE = 1e-4
"""Largest difference, as a part of the largest output."""


def load(folder: Path, name: str) -> onnx.ModelProto:
    path = folder / name
    if not path.is_file():
        pytest.skip(f"no ../shared/models/{name}")
    return onnx.load(path)


def reference(model: onnx.ModelProto, inputs: dict[str, Array]) -> list[Array]:
    """ONNX Runtime's results."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, inputs))


def check(executor: Executor, inputs: dict[str, Array]) -> list[Array]:
    """The executor's results, which are ONNX Runtime's."""
    results = list(executor.run(inputs).values())
    for found, expected in zip(results, reference(executor.source, inputs), strict=True):
        assert found.dtype == expected.dtype
        assert np.abs(found - expected).max() <= TOLERANCE * np.abs(expected).max()
    return results


def test_mnist_finds_its_ten_digits(shared_models: Path) -> None:
    executor = Executor(load(shared_models, "mnist/mnist.onnx"))
    for digit in range(10):
        picture = read_png(shared_models / "mnist" / f"mnist_sample{digit}.png")
        image = picture[None, None, :, :, 0].astype(np.float32)
        (scores,) = check(executor, {"Input3": image})
        assert scores.argmax() == digit


def test_ultraface_finds_the_faces_of_a_photograph(shared_models: Path) -> None:
    """Boxes above a score of 0.7 that overlap by less than a third: those ONNX Runtime has."""
    images = pytest.importorskip("PIL.Image", reason="needs Pillow, of the extra profile")
    model = load(shared_models, "ultraface/ultraface_rfb_320.onnx")
    picture = images.open(shared_models / "ultraface" / "1.jpg").convert("RGB").resize((320, 240))
    image = (np.asarray(picture, np.float32).transpose(2, 0, 1)[None] - 127) / 128
    scores, boxes = check(Executor(model), {"input": image})
    wanted_scores, wanted_boxes = reference(model, {"input": image})
    found, wanted = faces(scores[0], boxes[0]), faces(wanted_scores[0], wanted_boxes[0])
    assert len(found) > 3
    assert np.allclose(found, wanted, atol=1e-4)


def faces(scores: Array, boxes: Array) -> Array:
    """The best boxes [left, top, right, bottom] that do not overlap much."""
    order = np.argsort(-scores[:, 1])
    kept: list[Array] = []
    for box in boxes[order[scores[order, 1] > 0.7]]:
        if all(overlap(box, other) < 1 / 3 for other in kept):
            kept.append(box)
    return np.array(kept)


def overlap(a: Array, b: Array) -> float:
    """Intersection over union."""
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    inner = float(np.prod(np.maximum(high - low, 0)))
    return inner / float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - inner)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("cifar/resnet20_cifar10.onnx", (1, 3, 32, 32)),
        ("ultraface/ultraface_rfb_320.onnx", (1, 3, 240, 320)),
        ("mlperf_tiny/ic_resnet8_fp32.onnx", (1, 32, 32, 3)),
    ],
)
def test_real_models_give_the_answers_of_onnx_runtime(
    shared_models: Path, name: str, shape: tuple[int, ...]
) -> None:
    model = load(shared_models, name)
    weights = {each.name for each in model.graph.initializer}
    (image,) = [each.name for each in model.graph.input if each.name not in weights]
    executor = Executor(model)
    rng = np.random.default_rng(0)
    for _ in range(3):
        check(executor, {image: rng.standard_normal(shape).astype(np.float32)})


@pytest.mark.parametrize(
    ("name", "batch_norm"), [*((name, False) for name in sorted(NETWORKS)), ("resnet18", True)]
)
def test_well_known_networks_give_the_answers_of_onnx_runtime(name: str, batch_norm: bool) -> None:
    model = build(name, Options(size=64, classes=10, width=0.25, batch_norm=batch_norm))
    image = np.random.default_rng(0).standard_normal((1, 3, 64, 64)).astype(np.float32)
    check(Executor(model), {"image": image})
