"""Losses of int8 with each method and correction, and with ONNX Runtime's quantiser, in one run.

    python benchmarks/quantisation.py --models ../shared/models

Networks with badly scaled channels are made here; trained ones are the digits example and files of
``--models``, left out where they are absent.  Each model is quantised from some samples and judged
by others.  Outputs of all int8 models are ONNX Runtime's, in integers.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from dovetail.compiler.front.onnx.quantize import Method, QuantizeOptions, quantize_model

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT.parent / "shared" / "models"
sys.path.insert(0, str(ROOT / "examples"))
sys.path.insert(0, str(ROOT / "examples" / "digits"))

from networks import Options, build, calibration_images, shuffle_detector, unbalanced  # noqa: E402

Array = NDArray[np.float32]
OCTAVES = 4
"""Channels of the badly scaled networks are times 2^-4 to 2^4."""
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""By which ResNet-20 was trained."""
CIFAR_CLASSES = {"cat": 3, "dog_test_0": 5, "parrot": 2}
"""Photographs of things that CIFAR-10 names."""
CALIBRATION = 64

every = {"equalize": True, "correct_bias": True, "adaptive": True}
WAYS: dict[str, QuantizeOptions] = {
    "min-max, a scale a layer": QuantizeOptions(per_channel=False),
    "min-max": QuantizeOptions(),
    "mse": QuantizeOptions(Method.MSE),
    "min-max, equalised": QuantizeOptions(equalize=True),
    "min-max, biases": QuantizeOptions(correct_bias=True),
    "min-max, rounding and biases": QuantizeOptions(correct_bias=True, adaptive=True),
    "min-max, all corrections": QuantizeOptions(**every),
    "mse, all corrections": QuantizeOptions(Method.MSE, **every),
}


@dataclass(frozen=True)
class Case:
    """A model, samples to calibrate with and to judge by, and the labels of the latter."""

    name: str
    model: onnx.ModelProto
    calibration: Sequence[Array]
    samples: Sequence[Array]
    labels: NDArray[np.int64] | None = None


def cases(models: Path) -> Iterator[Case]:
    """The networks made here, then the trained ones."""
    images = [image[None] for image in calibration_images(48, 64)]
    for name, model in (
        ("MobileNetV1, badly scaled", build("mobilenet_v1", Options(64, 10, 0.25))),
        ("detector, badly scaled", shuffle_detector(Options(64, 4, 0.5))),
    ):
        yield Case(name, unbalanced(model, OCTAVES), images[:24], images[24:])
    yield digits()
    if (models / "mnist").is_dir():
        yield mnist(models / "mnist")
    if (models / "cifar").is_dir():
        yield cifar(models)


def digits() -> Case:
    """The example: calibrated on some of the training split, judged on the whole test split."""
    from data import load

    found = load()
    model = onnx.load(ROOT / "examples" / "digits" / "digits.onnx")
    train, test = (
        [image.transpose(2, 0, 1)[None] for image in images]
        for images in (found.train_images, found.test_images)
    )
    return Case("digits", model, train[: 2 * CALIBRATION : 2], test, found.test_labels)


def mnist(folder: Path) -> Case:
    """Ten digits, each moved by up to two pixels: 250 pictures."""
    from PIL import Image

    pictures, labels = [], []
    for digit in range(10):
        image = np.asarray(Image.open(folder / f"mnist_sample{digit}.png").convert("L"), np.float32)
        for row in range(-2, 3):
            for column in range(-2, 3):
                pictures.append(np.roll(image, (row, column), (0, 1))[None, None])
                labels.append(digit)
    model = onnx.load(folder / "mnist.onnx")
    return Case("MNIST", model, pictures[::4], pictures, np.array(labels))


def cifar(models: Path) -> Case:
    """Squares cut from photographs of a cat, a dog and a parrot, of random size and place."""
    from PIL import Image

    rng = np.random.default_rng(0)
    pictures, labels = [], []
    for file in sorted((models / "images").iterdir()):
        if file.stem not in CIFAR_CLASSES:
            continue
        image = Image.open(file).convert("RGB")
        for _ in range(300):
            side = int(min(image.size) * rng.uniform(0.4, 1.0))
            left, above = (int(rng.integers(0, size - side + 1)) for size in image.size)
            small = image.crop((left, above, left + side, above + side)).resize((32, 32))
            values = (np.asarray(small) / 255 - MEAN) / DEVIATION
            pictures.append(np.ascontiguousarray(values.transpose(2, 0, 1)[None], np.float32))
            labels.append(CIFAR_CLASSES[file.stem])
    step = len(pictures) // CALIBRATION
    model = onnx.load(models / "cifar" / "resnet20_cifar10.onnx")
    return Case("ResNet-20", model, pictures[::step], pictures, np.array(labels))


def outputs(model: onnx.ModelProto, samples: Sequence[Array]) -> Array:
    """float32[samples, values of the first output], by ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    name = session.get_inputs()[0].name
    return np.stack([session.run(None, {name: sample})[0].reshape(-1) for sample in samples])


def quantize_static(
    model: onnx.ModelProto, samples: Sequence[Array], per_channel: bool
) -> onnx.ModelProto:
    """ONNX Runtime's quantiser: min-max, symmetric weights, int8 throughout."""
    from onnxruntime import quantization as peer
    from onnxruntime.quantization.shape_inference import quant_pre_process

    name = model.graph.input[0].name

    class Reader(peer.CalibrationDataReader):
        def __init__(self) -> None:
            self._samples = iter(samples)

        def get_next(self) -> dict[str, Array] | None:
            sample = next(self._samples, None)
            return None if sample is None else {name: sample}

    with tempfile.TemporaryDirectory() as folder:
        given, ready, made = (Path(folder) / each for each in ("f.onnx", "p.onnx", "q.onnx"))
        onnx.save(model, given)
        quant_pre_process(given, ready, skip_symbolic_shape=True)
        peer.quantize_static(
            ready,
            made,
            Reader(),
            quant_format=peer.QuantFormat.QDQ,
            per_channel=per_channel,
            activation_type=peer.QuantType.QInt8,
            weight_type=peer.QuantType.QInt8,
        )
        return onnx.load(made)


def ways(case: Case) -> Iterator[tuple[str, Callable[[], onnx.ModelProto]]]:
    """Each way to quantise the case's model."""
    name = case.model.graph.input[0].name
    samples = [{name: sample} for sample in case.calibration]
    yield "ONNX Runtime", lambda: quantize_static(case.model, case.calibration, True)
    yield (
        "ONNX Runtime, a scale a layer",
        lambda: quantize_static(case.model, case.calibration, False),
    )
    for way, options in WAYS.items():
        yield way, lambda options=options: quantize_model(case.model, samples, options).model


def report(case: Case) -> None:
    """Print the case's table."""
    exact = outputs(case.model, case.samples)
    chosen = exact.argmax(axis=1)
    right = "" if case.labels is None else f", float {(chosen == case.labels).mean():.2%} right"
    print(f"\n{case.name}: {len(case.samples)} samples{right}\n")
    print("| | error | agreement | right | seconds |\n|---|---|---|---|---|")
    for way, quantize in ways(case):
        begin = time.perf_counter()
        try:
            model = quantize()
        except ValueError as error:  # ONNX Runtime's quantiser, for some models.
            print(f"| {way} | fails: {error} | | | |", flush=True)
            continue
        seconds = time.perf_counter() - begin
        found = outputs(model, case.samples)
        error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
        places = found.argmax(axis=1)
        right = "" if case.labels is None else f"{(places == case.labels).mean():.2%}"
        agreement = (places == chosen).mean()
        print(f"| {way} | {error:.2%} | {agreement:.2%} | {right} | {seconds:.1f} |", flush=True)


def main() -> None:
    """Print a table for each network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--models", type=Path, default=MODELS, help="Folder of trained models.")
    for case in cases(parser.parse_args().models):
        report(case)


if __name__ == "__main__":
    main()
