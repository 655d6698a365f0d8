"""From a float model and samples to the quantised model, top to bottom."""

from collections import Counter
from collections.abc import Callable, Iterable

import onnx

from dovetail.isa.frozen import frozen

from ....errors import ModelError
from ....pipeline.limits import Budget, Watch
from ....quantize.signature import Sample
from ..source import SourceModel
from .calibrate import Calibrated, Decision, calibrate
from .correct import corrected_weights
from .emit import emit
from .model import float_model, is_plain, read_model
from .options import QuantizeOptions
from .scales import Weights
from .weights import nearest_weights

__all__ = ["QuantizedModel", "quantize_calibrated", "quantize_model", "settle"]


@frozen
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
    activations, one scale a tensor.  Functions and bodies are written anew first.

    samples: real inputs; ``progress`` is called with the number of those done.
    Raises ModelError for a model that cannot be read or has nothing to quantise, CalibrationError
    for samples that do not fit it, CompileLimitError for a model that takes more than
    ``options.limits``, and what ``float_model`` raises.
    """
    options = options or QuantizeOptions()
    if not isinstance(model, onnx.ModelProto):
        raise ModelError(f"the model is {type(model).__name__}; required what onnx.load gives")
    if not is_plain(model):
        model = float_model(SourceModel(model, Budget(Watch(options.limits))))
    calibrated = calibrate(read_model(model, options.limits), samples, options, progress)
    return quantize_calibrated(calibrated, options)


def quantize_calibrated(calibrated: Calibrated, options: QuantizeOptions) -> QuantizedModel:
    """Quantise all but ``options.keep``, from ranges that are known."""
    model, (decision, weights) = calibrated.model, settle(calibrated, options)
    result = emit(
        model,
        decision.plan,
        decision.scales,
        weights,
        calibrated.shapes,
        calibrated.dtypes,
        unsigned=options.unsigned,
        per_channel=options.per_channel,
    )
    integer = Counter(n.kind for n in model.nodes if n.outputs[0] in decision.plan.roles)
    kept = tuple((str(node), reason) for node, reason in decision.plan.kept)
    return QuantizedModel(result, calibrated.samples, dict(integer), kept)


def settle(calibrated: Calibrated, options: QuantizeOptions) -> tuple[Decision, dict[str, Weights]]:
    """Scales of tensors, and the int8 weights of each contraction by its output."""
    model, decision = calibrated.model, calibrated.decide(options.keep)
    if options.correct_bias or options.adaptive:
        return decision, corrected_weights(calibrated, decision, options)
    return decision, nearest_weights(
        model, decision.plan, decision.scales, calibrated.shapes, options
    )
