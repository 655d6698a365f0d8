"""Accuracy of two models, against NumPy on all outputs at once."""

from collections.abc import Mapping

import numpy as np
import pytest

from dovetail.compiler.errors import CalibrationError
from dovetail.compiler.graph.ir import Array
from dovetail.compiler.quantize.accuracy import Metric, judge
from dovetail.compiler.quantize.data.dataset import Dataset, Source

COUNT, CLASSES = 40, 8
RANDOM = np.random.default_rng(3)
FLOAT = RANDOM.standard_normal((COUNT, CLASSES)).astype(np.float32)
INT8 = (FLOAT + 0.7 * RANDOM.standard_normal(FLOAT.shape)).astype(np.float32)
LABELS = RANDOM.integers(0, CLASSES, COUNT)


def data(labels: Array | None = LABELS, count: int = COUNT) -> Dataset:
    """Samples that hold their place."""
    source = Source("all", count, lambda places: ({"x": np.array([p])} for p in places))
    return Dataset((source,), labels)


def table(outputs: Array) -> object:
    return lambda sample: {"y": outputs[sample["x"]]}


def judged(labels: Array | None = LABELS, metric: Metric | None = None) -> object:
    return judge(table(FLOAT), table(INT8), data(labels), metric)


def top(outputs: Array, places: int) -> float:
    best = np.argsort(-outputs, axis=1)[:, :places]
    return float((best == LABELS[:, None]).any(axis=1).mean())


def test_labels_are_among_the_largest_outputs() -> None:
    found = judged()
    assert found.exact == pytest.approx({"top-1": top(FLOAT, 1), "top-5": top(FLOAT, 5)})
    assert found.quantized == pytest.approx({"top-1": top(INT8, 1), "top-5": top(INT8, 5)})
    assert found.drop == pytest.approx(top(FLOAT, 1) - top(INT8, 1))
    assert found.error == pytest.approx(np.linalg.norm(INT8 - FLOAT) / np.linalg.norm(FLOAT))


def test_without_labels_the_models_agree_or_not() -> None:
    found = judged(None)
    same = (FLOAT.argmax(axis=1) == INT8.argmax(axis=1)).mean()
    assert (found.exact, found.agreement) == ({}, pytest.approx(same))
    assert found.drop == pytest.approx(1 - same)


def test_equal_outputs_count_for_the_first_of_them() -> None:
    flat = table(np.zeros((COUNT, CLASSES), np.float32))
    found = judge(flat, flat, data())
    assert found.exact["top-1"] == pytest.approx((LABELS == 0).mean())
    assert found.exact["top-5"] == pytest.approx((LABELS < 5).mean())


def test_a_metric_gets_all_outputs_and_labels() -> None:
    def closeness(outputs: Array | Mapping[str, Array], labels: Array | None) -> float:
        assert isinstance(outputs, np.ndarray)
        np.testing.assert_array_equal(labels, LABELS)
        return -float(np.abs(outputs - FLOAT).mean())

    found = judged(metric=closeness)
    assert found.exact == {"closeness": 0}
    assert found.drop == pytest.approx(np.abs(INT8 - FLOAT).mean(), rel=1e-5)


def test_what_cannot_be_judged_is_refused() -> None:
    with pytest.raises(CalibrationError, match="label 8 of sample 0; required 0 to 7"):
        judged(np.full(COUNT, 8))
    with pytest.raises(CalibrationError, match="required one whole number a sample, or a metric"):
        judged(np.zeros((COUNT, 2)))
    with pytest.raises(CalibrationError, match="the metric gives nan; required a finite number"):
        judged(metric=lambda outputs, labels: np.nan)
    with pytest.raises(CalibrationError, match="no samples to judge by"):
        judge(table(FLOAT), table(INT8), data(None, 0))
