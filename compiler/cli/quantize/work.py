"""One model on its way to int8: calibrated once, quantised and judged as often as a bound needs."""

from functools import cached_property
from typing import Any

from dovetail.isa.frozen import frozen

from ...front.onnx.quantize.calibrate import calibrate
from ...front.onnx.quantize.driver import QuantizedModel, quantize_calibrated
from ...front.onnx.quantize.model import read_model, signatures
from ...front.onnx.quantize.options import QuantizeOptions
from ...front.onnx.quantize.within import losses_of, quantize_within
from ...front.source import Normalization
from ...quantize.accuracy import Accuracy, Metric, judge
from ...quantize.loss import Loss
from .data import Given
from .runners import runner

__all__ = ["Judged", "Work"]


@frozen
class Judged:
    """model: good enough.  whole: with none of ``keep``, nodes that stay float for that."""

    model: QuantizedModel
    accuracy: Accuracy
    whole: QuantizedModel
    whole_accuracy: Accuracy
    keep: frozenset[str]


class Work:
    """A float model, its data, and what they were calibrated to.

    samples: the most that decide ranges.  loss_samples: the most of those that measure losses.
    own: what the model's file says of pixels.
    """

    def __init__(
        self,
        model: Any,
        given: Given,
        options: QuantizeOptions,
        samples: int,
        loss_samples: int,
        own: Normalization | None = None,
    ) -> None:
        self.model, self.options = model, options
        self.data = given.read(model, signatures(model), own)
        self.calibration = self.data.spread(samples)
        self._few = self.calibration.spread(loss_samples)
        self._calibrated = calibrate(read_model(model, options.limits), self.calibration, options)

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """Losses of each tensor and each layer's weights alone."""
        return losses_of(self._calibrated, self.options, self._few)

    def plain(self) -> QuantizedModel:
        """Quantised as the options say."""
        return quantize_calibrated(self._calibrated, self.options)

    def judged(self, bound: float, metric: Metric | None, most: int | None) -> Judged:
        """Quantised with a loss of at most ``bound``.

        most: samples to judge by.  Raises CalibrationError when no mixture is good enough.
        """
        exact, samples = runner(self.model), self.data.spread(most)
        judged: list[Accuracy] = []

        def drop_of(model: Any) -> float:
            judged.append(judge(exact, runner(model), samples, metric))
            return judged[-1].drop

        quantized, whole, bounded = quantize_within(
            self._calibrated, self.options, bound, drop_of, lambda: self.losses
        )
        final = next(each for each in reversed(judged) if each.drop == bounded.drop)
        return Judged(quantized, final, whole, judged[0], bounded.keep)
