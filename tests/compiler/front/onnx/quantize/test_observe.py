"""Ranges from what calibration sees."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.compiler.front.onnx.quantize import Method, QuantizeOptions
from dovetail.compiler.front.onnx.quantize.observe import BINS, Observer
from dovetail.compiler.front.onnx.quantize.scales import activation_scale

from .floats import random

LISTS = st.lists(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=20), min_size=1, max_size=6
)


def observed(*batches: np.ndarray) -> Observer:
    observer = Observer()
    for batch in batches:
        observer.see(np.asarray(batch, np.float32))
    return observer


@given(LISTS)
def test_minmax_is_the_smallest_range_with_all_values_and_zero(batches: list[list[float]]) -> None:
    observer = observed(*map(np.array, batches))
    values = np.concatenate([*map(np.array, batches), [0.0]]).astype(np.float32)
    assert observer.range(QuantizeOptions()) == (values.min(), values.max())


@given(LISTS)
def test_nothing_is_lost_when_larger_values_come(batches: list[list[float]]) -> None:
    observer = observed(*map(np.array, batches))
    assert observer.counts.sum() + observer.zeros == sum(map(len, batches))


@pytest.mark.parametrize("inside", [90.0, 99.0, 99.9])
def test_percentiles_leave_out_their_share_within_a_bin(inside: float) -> None:
    batches = [random((5000,), seed, 10.0**seed) for seed in range(3)]
    observer = observed(*batches)
    low, high = observer.range(QuantizeOptions(Method.PERCENTILE, inside))
    values, width = np.concatenate(batches), 2 * observer.reach / BINS
    tail = (100 - inside) / 200
    assert (values < low - width).mean() <= tail <= (values < low + width).mean()
    assert (values > high + width).mean() <= tail <= (values > high - width).mean()


def test_percentile_100_is_minmax() -> None:
    observer = observed(random((1000,)))
    found = observer.range(QuantizeOptions(Method.PERCENTILE, 100.0))
    np.testing.assert_allclose(found, observer.range(QuantizeOptions()), rtol=1e-3)


@pytest.mark.parametrize("rectified", [False, True])
def test_entropy_gives_up_outliers_and_keeps_the_bulk(rectified: bool) -> None:
    values = random((200_000,))
    outliers = np.array([40.0, 41.0], np.float32)
    if rectified:
        values = np.maximum(values, 0)
    low, high = observed(values, outliers).range(QuantizeOptions(Method.ENTROPY))
    assert 2.5 < high < 10
    assert low == 0 if rectified else -10 < low < -2.5


def test_entropy_needs_more_values_than_bins() -> None:
    observer = observed(random((BINS - 1,)))
    assert observer.range(QuantizeOptions(Method.ENTROPY)) == (observer.low, observer.high)


def test_entropy_keeps_what_is_evenly_spread() -> None:
    values = np.linspace(-3, 3, 100_000, dtype=np.float32)
    low, high = observed(values).range(QuantizeOptions(Method.ENTROPY))
    np.testing.assert_allclose([low, high], [-3, 3], rtol=0.02)


@pytest.mark.parametrize("shape", ["normal", "rectified", "heavy tails"])
def test_mse_finds_the_range_with_the_least_error_of_quantisation(shape: str) -> None:
    values = random((40_000,))
    values = {"normal": values, "rectified": np.maximum(values, 0), "heavy tails": values**5}[shape]

    def error(limits: tuple[float, float]) -> float:
        chosen = activation_scale(limits)
        steps = np.clip(np.rint(values / chosen.scale) + chosen.zero_point, -128, 127)
        return float((((steps - chosen.zero_point) * chosen.scale - values) ** 2).mean())

    low, high = min(values.min(), 0), values.max()
    tried = [(max(low, -cut), min(high, cut)) for cut in np.geomspace(high / 100, high, 60)]
    found = observed(values).range(QuantizeOptions(Method.MSE))
    assert error(found) <= 1.02 * min(map(error, tried))


@pytest.mark.parametrize("method", Method)
def test_a_tensor_of_zeros_has_an_empty_range(method: Method) -> None:
    assert observed(np.zeros(5)).range(QuantizeOptions(method)) == (0, 0)


@pytest.mark.parametrize("given", [{"percentile": 50}, {"percentile": 101}, {"samples": 0}])
def test_options_without_meaning_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="required"):
        QuantizeOptions(**given)
