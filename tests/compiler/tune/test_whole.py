"""A whole network with and without records, run here."""

import numpy as np
import pytest

from dovetail.compiler.front.stored import StoredModel
from dovetail.compiler.tune import whole
from dovetail.compiler.tune.kernel import Setting
from dovetail.compiler.tune.whole import WholeJob

from .models import small_model


@pytest.mark.parametrize(
    ("error", "said"), [(1e-4, ""), (-1.0, "differ by 0.0e+00 of the largest")]
)
def test_both_networks_run_in_turn_after_their_results_are_compared(
    error: float, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "SECONDS", 0.0)
    monkeypatch.setattr(whole, "ERROR", error)
    seconds = iter(range(1, 1000))
    monkeypatch.setattr(whole, "_seconds", lambda session, inputs: float(next(seconds)))
    stored = StoredModel(".onnx", small_model(size=4).to_bytes())
    found = WholeJob(stored, {}, Setting(), False).run()
    assert said in found.error
    # Blocks of 4 take 1, 9, ... and 5, 13, ... at best; a quarter of them take less.
    assert (found.cost, found.baseline) == ((None, None) if said else (9.0, 13.0))


def test_a_difference_is_a_share_of_the_largest_wanted_number() -> None:
    wanted = {"a": np.array([4.0, -8.0]), "b": np.zeros(2), "c": np.zeros(0)}
    near = {**wanted, "a": np.array([4.0, -7.0])}
    assert whole._difference(wanted, wanted) == 0
    assert whole._difference(near, wanted) == 0.125
    assert whole._difference({**near, "b": np.array([0, 0.5])}, wanted) == 0.5
