"""No fault changes a result; ``make faults`` injects thousands."""

from .faults import campaign


def test_every_run_is_right_or_a_clear_error() -> None:
    found = campaign(seed=1, runs=3)
    assert found["wrong"] == 0
    assert found["right"] + found["errors"] == 3
    assert found["right"] > 0
    assert found["faults"] > 0
