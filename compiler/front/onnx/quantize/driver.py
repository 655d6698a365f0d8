"""From a float model and samples to the quantised model, top to bottom."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
import onnx

from ....errors import CalibrationError, ModelError
from ....quantize.signature import Sample
from .emit import emit
from .evaluate import Evaluator
from .model import FloatModel, read_model
from .observe import Observer, Range
from .options import QuantizeOptions
from .plan import Plan, Role, plan
from .scales import Quantization, activation_scale
from .simplify import simplify

__all__ = ["QuantizedModel", "quantize_model"]

SCALE_256 = 255 / 256
FIXED_RANGES = {"Sigmoid": (0.0, SCALE_256), "Softmax": (0.0, SCALE_256), "Tanh": (-1.0, 127 / 128)}
"""Ranges that the operator decides, not the data."""


@dataclass(frozen=True, slots=True)
class QuantizedModel:
    """model: in QDQ form.  samples: how many calibrated it.

    integer: number of nodes that became integer operators, by kind.  kept: the nodes that stay
    float, and why.
    """

    model: onnx.ModelProto
    samples: int
    integer: dict[str, int]
    kept: tuple[tuple[str, str], ...]


def quantize_model(
    model: onnx.ModelProto,
    samples: Iterable[Sample],
    options: QuantizeOptions | None = None,
    progress: Callable[[int], None] | None = None,
) -> QuantizedModel:
    """Quantise a float model: int8 weights, symmetric, one scale a channel; int32 biases; int8
    activations, one scale a tensor.

    samples: real inputs; ``progress`` is called with the number of those done.
    Raises ModelError for a model that cannot be read or has nothing to quantise, CalibrationError
    for samples that do not fit it.
    """
    options = options or QuantizeOptions()
    chosen = islice(samples, options.samples)
    first = next(chosen, None)
    if first is None:
        raise CalibrationError("no calibration data; required at least one sample")
    read = read_model(model)
    shapes, _ = _tensors(read, first)
    simple = simplify(read, shapes)
    more, floats = _tensors(simple, first)
    shapes |= more
    decided = plan(simple, shapes, floats)
    if not any(role is Role.CONTRACTION for role in decided.roles.values()):
        reasons = "; ".join(f"{node}: {reason}" for node, reason in decided.kept[:3])
        raise ModelError(f"no convolution or matrix product can be quantised: {reasons}")
    observers = {name: Observer() for name in decided.calibrated(simple)}
    count = 0
    evaluator = Evaluator(simple)
    for sample in (first, *chosen):
        _observe(evaluator, sample, count, observers)
        count += 1
        if progress:
            progress(count)
    scales = _scales(simple, decided, observers, options)
    result = emit(
        simple,
        decided,
        scales,
        shapes,
        unsigned=options.unsigned,
        per_channel=options.per_channel,
    )
    integer = Counter(n.kind for n in simple.nodes if n.outputs[0] in decided.roles)
    kept = tuple((str(node), reason) for node, reason in decided.kept)
    return QuantizedModel(result, count, dict(integer), kept)


def _tensors(
    model: FloatModel, sample: Sample
) -> tuple[dict[str, tuple[int, ...]], frozenset[str]]:
    """The shape of every tensor, and the names of those of float32."""
    shapes, floats = {}, set()
    for name, array in (*model.constants.items(), *Evaluator(model).run(sample)):
        shapes[name] = np.shape(array)
        if np.asarray(array).dtype == np.float32:
            floats.add(name)
    return shapes, frozenset(floats)


def _observe(
    evaluator: Evaluator, sample: Sample, number: int, observers: dict[str, Observer]
) -> None:
    for name, array in evaluator.run(sample):
        if name not in observers:
            continue
        if not np.isfinite(array).all():
            raise CalibrationError(
                f"tensor {name!r} has a NaN or infinity for sample {number}; required finite values"
            )
        observers[name].see(array)


def _scales(
    model: FloatModel,
    decided: Plan,
    observers: dict[str, Observer],
    options: QuantizeOptions,
) -> dict[str, Quantization]:
    """One for each quantised tensor: that of its group, whose range holds those of all members."""
    ranges: dict[str, Range] = {}
    for name, observer in observers.items():
        producer = model.producers.get(name)
        kind = producer.kind if producer else ""
        low, high = FIXED_RANGES.get(kind) or observer.range(options)
        group = decided.group[name]
        before = ranges.get(group, (0.0, 0.0))
        ranges[group] = (min(before[0], low), max(before[1], high))
    chosen = {group: activation_scale(limits) for group, limits in ranges.items()}
    return {name: chosen[group] for name, group in decided.group.items()}
