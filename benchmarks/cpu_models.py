"""The models that ``cpu.py`` measures, their inputs, and their outputs in float64."""

import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from wide import to_float64

from dovetail.compiler.front.onnx.quantize import QuantizeOptions, quantize_model
from dovetail.compiler.targets.cpu.executor.executor import Executor
from dovetail.compiler.targets.cpu.llvm.compile import LlvmOptions

__all__ = ["FLOAT", "INTEGER", "exact_outputs", "model_file", "random_inputs"]

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared" / "models"
REAL = {
    "mnist": "mnist/mnist.onnx",
    "resnet20": "cifar/resnet20_cifar10.onnx",
    "ultraface": "ultraface/ultraface_rfb_320.onnx",
}
FLOAT = ("resnet18", "resnet50", "squeezenet", "mobilenet_v2", "mobilenet_v3", "vgg16", "bert")
INTEGER = ("resnet18_uint8", "resnet50_uint8", "mobilenet_v2_uint8")
UINT8 = "_uint8"
SAMPLES = 4
FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)

Arrays = dict[str, NDArray[Any]]


def model_file(name: str, folder: Path) -> Path:
    """A real model, a file, or a network that is built in ``folder``, with random weights.

    ``NETWORK_uint8`` is a network of ``examples/networks``, quantised.
    Raises UsageError for a name that is none of these, and for a file that is missing.
    """
    if name in REAL or name.endswith(".onnx"):
        path = SHARED / REAL[name] if name in REAL else Path(name)
        if not path.is_file():
            raise click.UsageError(f"no model file {path}")
        return path
    path = folder / f"{name}.onnx"
    if not path.is_file():
        onnx.save(_built(name), path)
    return path


def _built(name: str) -> onnx.ModelProto:
    sys.path.append(str(ROOT / "examples"))
    from networks import NETWORKS, Options, bert, build, calibration_images

    if name == "bert":
        return bert()
    if name.removesuffix(UINT8) not in NETWORKS:
        known = ", ".join((*REAL, "bert", *NETWORKS))
        raise click.UsageError(
            f"no network is called {name!r}; known are {known}, those of examples/networks also "
            f"with {UINT8}, and files that end in .onnx"
        )
    if not name.endswith(UINT8):
        return build(name, Options())
    images = calibration_images(SAMPLES, Options().size)
    samples = ({"image": image[None]} for image in images)
    network = build(name.removesuffix(UINT8), Options())
    return quantize_model(network, samples, QuantizeOptions(unsigned=True)).model


def random_inputs(model: onnx.ModelProto) -> Arrays:
    """Normal numbers, or small positive integers; unknown dimensions are 1."""
    rng, found = np.random.default_rng(0), {}
    weights = {each.name for each in model.graph.initializer}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [dim.dim_value or 1 for dim in kind.shape.dim]
        if value.name in weights:
            continue
        if kind.elem_type in FLOATS:
            dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
            found[value.name] = rng.standard_normal(shape).astype(dtype)
        else:
            dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
            found[value.name] = rng.integers(1, 2 if value.name == "mask" else 100, shape, dtype)
    return found


def exact_outputs(model: onnx.ModelProto, inputs: Arrays, cache: Path) -> list[NDArray[Any]]:
    """Outputs of the model with all floats in float64."""
    wide_inputs = {
        name: array.astype(np.float64) if array.dtype == np.float32 else array
        for name, array in inputs.items()
    }
    executor = Executor(to_float64(model), LlvmOptions(cache=cache, winograd=False))
    return [np.asarray(each) for each in executor.run(wide_inputs).values()]
