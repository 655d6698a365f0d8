"""More of one thing never costs a cycle where plans are searched for as long as usual."""

import pytest

from .monotony import dearer


@pytest.mark.parametrize("seed", [2, 3, 5])
def test_more_memory_and_a_faster_bus_never_cost_a_cycle(seed: int) -> None:
    assert not dearer(seed)
