"""Differences of the quantised model from the float model, tensor by tensor, on samples."""

from collections.abc import Iterable

import numpy as np
import onnx

from dovetail.isa.frozen import frozen

from ....errors import CalibrationError
from ....graph.ir import Array
from ....quantize.signature import Sample, fitted
from .emit import DEQUANTIZED
from .evaluate import Evaluator
from .model import read_any_model, read_model
from .simplify import FoldConstants

__all__ = ["Comparison", "compare"]


@frozen
class Comparison:
    """Differences over ``samples``, relative to the float values: ``|q - f| / |f|`` (2-norms).

    tensors: of quantised tensors, in the order they are computed; of what was lost before, too.
    outputs: of the model's outputs.  agreement: share of samples in which the largest element of
    the first output is in the same place.
    """

    samples: int
    tensors: dict[str, float]
    outputs: dict[str, float]
    agreement: float


def compare(
    original: onnx.ModelProto, quantized: onnx.ModelProto, samples: Iterable[Sample]
) -> Comparison:
    """Run both; the quantised one in float arithmetic between its quantisations, which differs from
    its integer arithmetic in rare last bits only.

    original: the model from which ``quantize_model`` made ``quantized``.
    Raises CalibrationError for samples that do not fit it, or none.
    """
    model, read = read_model(original), FoldConstants({}).run(read_any_model(quantized))
    exact, rounded = Evaluator(model), Evaluator(read)
    stands = {
        name.removesuffix(DEQUANTIZED): name
        for name in read.producers
        if name.endswith(DEQUANTIZED)
    }
    stands |= {name: name for name in model.outputs}
    errors: dict[str, float] = {}
    sizes: dict[str, float] = {}
    count = agreed = 0
    for sample in fitted(samples, model.inputs):
        wanted = {name: array for name, array in exact.run(sample) if name in stands}
        names = {stands[name]: name for name in wanted}
        for stand, array in rounded.run(sample):
            if stand not in names:
                continue
            name = names[stand]
            difference = array.astype(np.float64) - wanted[name]
            errors[name] = errors.get(name, 0.0) + _square(difference)
            sizes[name] = sizes.get(name, 0.0) + _square(wanted[name])
            if name == model.outputs[0]:
                agreed += int(array.argmax() == wanted[name].argmax())
        count += 1
    if not count:
        raise CalibrationError(
            "no samples to compare by; required at least one: a generator gives its own only once"
        )
    relative = {
        name: float(np.sqrt(errors[name] / sizes[name])) if sizes[name] else 0.0 for name in errors
    }
    return Comparison(
        count,
        {name: error for name, error in relative.items() if name not in model.outputs},
        {name: relative[name] for name in model.outputs if name in relative},
        agreed / count,
    )


def _square(values: Array) -> float:
    flat = values.astype(np.float64).reshape(-1)
    return float(flat @ flat)
