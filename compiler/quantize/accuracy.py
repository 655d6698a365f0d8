"""Quality of a model on labelled samples, float against int8."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from dovetail.isa.frozen import frozen

from ..errors import CalibrationError
from ..graph.ir import Array
from .data import Dataset
from .signature import Sample

__all__ = ["Accuracy", "Metric", "Run", "judge"]

Run = Callable[[Sample], Mapping[str, Array]]
"""A model: its outputs, by name, in order."""
Metric = Callable[[Array | Mapping[str, Array], Array | None], float]
"""A figure, the larger the better, of outputs [samples, ...] (by name where there are several) and
labels.
"""
PLACES = {"top-1": 1, "top-5": 5}


@frozen
class Accuracy:
    """Metrics by name, the one that counts first; none without labels.

    agreement: share of samples in which both have the largest element of the first output at the
    same place.  error: of all outputs, ``|int8 - float| / |float|`` (2-norms).
    """

    samples: int
    exact: Mapping[str, float]
    quantized: Mapping[str, float]
    agreement: float
    error: float

    @property
    def drop(self) -> float:
        """Loss of int8 in the first metric, or in agreement where nothing is labelled."""
        for name, value in self.exact.items():
            return value - self.quantized[name]
        return 1 - self.agreement


def judge(exact: Run, quantized: Run, data: Dataset, metric: Metric | None = None) -> Accuracy:
    """Run both models on all samples, one at a time.

    Without ``metric``, labels are places in the first output: top-1, and top-5 of more than five.
    With it, outputs are kept until all have run.
    Raises CalibrationError for labels beyond the output, or a metric without a number.
    """
    scores = [_Scores(data.labels, metric) for _ in range(2)]
    count = agreed = 0
    noise = signal = 0.0
    for place, sample in enumerate(data):
        outputs = [run(sample) for run in (exact, quantized)]
        for score, found in zip(scores, outputs, strict=True):
            score.see(place, found)
        first, second = (next(iter(found.values())) for found in outputs)
        agreed += int(first.argmax() == second.argmax())
        for name, array in outputs[0].items():
            noise += _square(outputs[1][name].astype(np.float64) - array)
            signal += _square(array.astype(np.float64))
        count += 1
    if not count:
        raise CalibrationError("no samples to judge by; required at least one")
    figures = [dict(score.figures(count)) for score in scores]
    error = float(np.sqrt(noise / signal)) if signal else 0.0
    return Accuracy(count, figures[0], figures[1], agreed / count, error)


class _Scores:
    """The metrics of one model, as its outputs come."""

    def __init__(self, labels: Array | None, metric: Metric | None) -> None:
        self._labels, self._metric = labels, metric
        self._hits = dict.fromkeys(PLACES, 0)
        self._kept: list[dict[str, Array]] = []
        self._size = 0
        if metric is None and labels is not None and (labels.ndim != 1 or labels.dtype.kind != "i"):
            raise CalibrationError(
                f"labels are {labels.dtype}{list(labels.shape)}; required one whole number a "
                "sample, or a metric that takes them"
            )

    def see(self, place: int, outputs: Mapping[str, Array]) -> None:
        """Count the outputs for sample ``place``."""
        if self._metric is not None:
            self._kept.append({name: np.array(array) for name, array in outputs.items()})
        elif self._labels is not None:
            values, label = next(iter(outputs.values())).reshape(-1), int(self._labels[place])
            self._size = values.size
            if not 0 <= label < values.size:
                raise CalibrationError(
                    f"label {label} of sample {place}; required 0 to {values.size - 1}, a place "
                    "in the first output"
                )
            # Among equal values, those before it stand higher.
            rank = int((values > values[label]).sum() + (values[:label] == values[label]).sum())
            for name, places in PLACES.items():
                self._hits[name] += rank < places

    def figures(self, count: int) -> Iterator[tuple[str, float]]:
        """Each metric's name and value."""
        if self._metric is not None:
            joined = {name: _joined([k[name] for k in self._kept]) for name in self._kept[0]}
            given = joined if len(joined) > 1 else next(iter(joined.values()))
            value = self._metric(given, self._labels)
            try:
                number = float(value)
            except (TypeError, ValueError):
                number = np.nan
            if not np.isfinite(number):
                raise CalibrationError(f"the metric gives {value!r}; required a finite number")
            yield getattr(self._metric, "__name__", "metric"), number
        elif self._labels is not None:
            for name, places in PLACES.items():
                if places == 1 or self._size > places:
                    yield name, self._hits[name] / count


def _joined(arrays: list[Array]) -> Array:
    """[samples, ...]; a batch of one sample adds no dimension."""
    if arrays[0].ndim and len(arrays[0]) == 1:
        return np.concatenate(arrays)
    return np.stack(arrays)


def _square(values: Array) -> float:
    flat = values.reshape(-1)
    return float(flat @ flat)
