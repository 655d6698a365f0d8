"""TensorFlow Lite's files of ``../shared/models``, and what LiteRT's reference kernels make of
their inputs.
"""

from pathlib import Path
from typing import Any

import numpy as np
from models import REAL, SHARED, ModelFile
from numpy.typing import NDArray

__all__ = ["references", "tflite_models"]

Array = NDArray[Any]
SEED = 1


def tflite_models() -> dict[str, ModelFile]:
    """The files that are here, by the names that the ONNX models have, and ``_tflite``."""
    paths = {
        f"{name}_tflite": (SHARED / file).with_suffix(".tflite") for name, file in REAL.items()
    }
    return {
        name: ModelFile(name, lambda path=path: path)
        for name, path in paths.items()
        if path.is_file()
    }


def references(path: Path, count: int) -> list[tuple[Array, Array]]:
    """``count`` inputs at most, and the outputs; none for a file of another format.

    Both lie beside the model.  Where they do not, LiteRT computes the outputs; inputs are random.
    """
    if path.suffix != ".tflite":
        return []
    golden, inputs, wanted = path.with_suffix(".golden.npz"), None, None
    if golden.is_file():
        with np.load(golden) as arrays:
            inputs = arrays["input"][:count]
            wanted = arrays.get("tflite_reference")
    found = _litert(path, inputs, count) if wanted is None else (inputs, wanted)
    return list(zip(*found, strict=False))


def _litert(path: Path, inputs: Array | None, count: int) -> tuple[Array, list[Array]]:
    """Inputs, random where there are none, and the outputs of the reference kernels."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    runner = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    runner.allocate_tensors()
    (given,), (result,) = runner.get_input_details(), runner.get_output_details()
    if inputs is None:
        limits = np.iinfo(given["dtype"])
        shape = (count, *given["shape"])
        rng = np.random.default_rng(SEED)
        inputs = rng.integers(limits.min, limits.max, shape, given["dtype"], endpoint=True)
    outputs = []
    for each in inputs:
        runner.set_tensor(given["index"], each.reshape(given["shape"]))
        runner.invoke()
        outputs.append(np.array(runner.get_tensor(result["index"])))
    return inputs, outputs
