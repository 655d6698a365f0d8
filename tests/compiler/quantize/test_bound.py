"""Layers in float until a bound holds, and the order in which they become so."""

import pytest

from dovetail.compiler.errors import CalibrationError
from dovetail.compiler.quantize.bound import keep_within
from dovetail.compiler.quantize.loss import Kind, Loss, worst_first

NAMES = [f"layer{place}" for place in range(20)]
ORDER = [frozenset(NAMES[: place + 1]) for place in range(20)]


@pytest.mark.parametrize("needed", [0, 1, 2, 3, 5, 8, 13, 19, 20])
def test_as_few_as_are_needed_stay_float(needed: int) -> None:
    found = keep_within(0.01, ORDER, lambda keep: 0.0 if len(keep) >= needed else 0.5)
    assert found.keep == frozenset(NAMES[:needed])
    assert found.drop == 0
    assert found.tried <= 10


def test_a_bound_that_nothing_keeps_is_refused() -> None:
    with pytest.raises(CalibrationError, match=r"20\.00% at best, with 20 .*required 1\.00%"):
        keep_within(0.01, ORDER, lambda keep: 0.2)


def weights(layer: str, output: float) -> Loss:
    return Loss(Kind.WEIGHTS, layer, frozenset([layer]), 0.1, output)


def test_what_loses_most_comes_first() -> None:
    order = worst_first([weights("a", 0.1), weights("b", 0.3), weights("c", 0.2)])
    assert order == (frozenset("b"), frozenset("bc"), frozenset("abc"))


def test_a_tensor_is_saved_with_all_layers_that_touch_it() -> None:
    between = Loss(Kind.TENSOR, "x", frozenset("ac"), 0.1, 0.4)
    order = worst_first([weights("a", 0.1), weights("b", 0.2), weights("c", 0.0), between])
    assert order == (frozenset("ac"), frozenset("abc"))


def test_own_loss_is_told_in_decibels() -> None:
    assert weights("a", 0.1).signal_to_noise == pytest.approx(20)
    assert Loss(Kind.TENSOR, "x", frozenset(), 0.0, 0.0).signal_to_noise == float("inf")
