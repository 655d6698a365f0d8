"""The two quantisers that networks of the zoo go through: this project's, and ONNX Runtime's."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from dovetail.compiler.front.onnx.quantize import QuantizeOptions, quantize_model

__all__ = ["QUANTISERS", "Quantiser", "inputs_of"]

SAMPLES = 2
Array = NDArray[Any]
Quantiser = Callable[[onnx.ModelProto], onnx.ModelProto]


def inputs_of(model: onnx.ModelProto, seed: int) -> dict[str, Array]:
    """A random input by name: blurred noise in float32 with mean 0 and variance 1."""
    constants = {each.name for each in model.graph.initializer}
    rng = np.random.default_rng(seed)
    found = {}
    for each in model.graph.input:
        if each.name in constants:
            continue
        shape = [dim.dim_value or 1 for dim in each.type.tensor_type.shape.dim]
        noise = rng.standard_normal(shape)
        for axis in range(2, noise.ndim):
            noise += np.roll(noise, 1, axis) + np.roll(noise, 2, axis)
        found[each.name] = (noise / noise.std()).astype(np.float32)
    return found


def _dovetail(unsigned: bool) -> Quantiser:
    def quantise(model: onnx.ModelProto) -> onnx.ModelProto:
        samples = (inputs_of(model, seed) for seed in range(SAMPLES))
        return quantize_model(model, samples, QuantizeOptions(unsigned=unsigned)).model

    return quantise


def _onnx_runtime(activations: str) -> Quantiser:
    """As its documentation advises: shapes and optimisation first, then ``quantize_static``."""

    def quantise(model: onnx.ModelProto) -> onnx.ModelProto:
        from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
        from onnxruntime.quantization.shape_inference import quant_pre_process

        class Reader(CalibrationDataReader):
            def __init__(self) -> None:
                self.samples: Iterator[dict[str, Array]] = iter(
                    [inputs_of(model, seed) for seed in range(SAMPLES)]
                )

            def get_next(self) -> dict[str, Array] | None:
                return next(self.samples, None)

        with tempfile.TemporaryDirectory() as folder:
            given, ready, made = (Path(folder) / f"{n}.onnx" for n in ("given", "ready", "made"))
            onnx.save(model, given)
            quant_pre_process(given, ready, skip_symbolic_shape=True)
            quantize_static(ready, made, Reader(), activation_type=QuantType[activations])
            return onnx.load(made)

    return quantise


QUANTISERS: dict[str, Quantiser] = {
    "dovetail": _dovetail(unsigned=False),
    "ort": _onnx_runtime("QInt8"),
    "ort-uint8": _onnx_runtime("QUInt8"),
}
"""Activations are int8 where the name does not say otherwise."""
