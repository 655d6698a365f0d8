"""A mixture of int8 and float whose loss stays within a bound."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import onnx

from ....quantize.bound import Bounded, keep_within
from ....quantize.loss import Loss, worst_first
from ....quantize.signature import Sample
from .calibrate import Calibrated
from .driver import QuantizedModel, quantize_calibrated, settle
from .losses import measure_losses
from .options import QuantizeOptions
from .weights import contractions

__all__ = ["losses_of", "quantize_within"]


def losses_of(
    calibrated: Calibrated, options: QuantizeOptions, samples: Iterable[Sample]
) -> tuple[Loss, ...]:
    """Losses of each tensor and each layer's weights alone, quantised as ``options`` say."""
    decision, weights = settle(calibrated, options)
    return measure_losses(calibrated, decision, weights, samples)


def quantize_within(
    calibrated: Calibrated,
    options: QuantizeOptions,
    bound: float,
    drop_of: Callable[[onnx.ModelProto], float],
    losses: Callable[[], tuple[Loss, ...]],
) -> tuple[QuantizedModel, QuantizedModel, Bounded]:
    """Keep the layers float that lose most, as few as ``drop_of`` the model asks for: that mixture,
    and the model with none of them float.

    losses: measured only if int8 alone is not good enough.
    Raises CalibrationError when no mixture is.
    """
    found: dict[frozenset[str], QuantizedModel] = {}

    def drop(keep: frozenset[str]) -> float:
        kept = replace(options, keep=options.keep | keep)
        found[keep] = quantize_calibrated(calibrated, kept)
        return drop_of(found[keep].model)

    none = frozenset[str]()
    first = drop(none)
    if first <= bound:
        return found[none], found[none], Bounded(none, first, 1)
    # With all products in float, there is nothing left to quantise.
    products = {node.name for node in contractions(calibrated.model, calibrated.whole)}
    order = [keep for keep in worst_first(losses()) if not products <= keep | options.keep]
    bounded = keep_within(bound, order, lambda keep: drop(keep) if keep else first)
    return found[bounded.keep], found[none], bounded
