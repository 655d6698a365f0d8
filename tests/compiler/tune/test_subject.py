"""Kernels of a model on a CPU: which are worth a search, and what a run costs by them."""

from collections import Counter
from typing import Any, cast

import pytest

from dovetail.compiler.tune.subject import CpuSubject
from dovetail.compiler.tune.variants import Layers

CHOICES = {"conv": {0: Counter(plain=2), 4: Counter(turn=1, tiles=1), 6: Counter(turn=1, far=3)}}
SUBJECT = CpuSubject(
    Layers({}, Counter(pool=3, turn=1), CHOICES, {"conv": 0}), cast(Any, None), cast(Any, None)
)
COSTS = {"pool": 1.0, "turn": 1.0, "plain": 4.0, "tiles": 5.0, "far": 6.0}


def test_ways_of_a_convolution_are_searched_that_are_close_to_its_best() -> None:
    # Plain takes 8, tiles of 4 take 6, and tiles of 6 take 19: more than 1.3 times the best.
    assert SUBJECT.weights(COSTS) == {"pool": 3.0, "turn": 1.0 + 1.0, "tiles": 5.0}
    near = {**COSTS, "plain": 3.5}
    assert SUBJECT.weights(near) == {"pool": 3.0, "turn": 2.0, "tiles": 5.0, "plain": 7.0}


def test_ways_that_were_not_measured_are_not_searched() -> None:
    known = {key: COSTS[key] for key in ("pool", "plain")}
    assert SUBJECT.weights(known) == {"pool": 3.0, "turn": 0.0, "plain": 8.0}
    assert SUBJECT.weights({}) == {"pool": 0.0, "turn": 0.0}


def test_a_run_by_the_defaults_is_compared_with_one_by_the_best_way_of_each() -> None:
    assert SUBJECT.totals(COSTS, COSTS) == (4.0 + 8.0, 4.0 + 6.0)
    assert SUBJECT.totals({}, COSTS) == (0.0, 0.0)
    assert SUBJECT.unit(0.0125) == "12.500 ms"
    assert 0.9 < SUBJECT.worth() < 1


@pytest.mark.parametrize("tile", [0, 4])
def test_a_forced_way_is_what_a_run_takes(tile: int) -> None:
    layers = SUBJECT.layers
    assert layers.calls({"conv": tile}) == layers.rest + CHOICES["conv"][tile]
