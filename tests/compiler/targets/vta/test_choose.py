"""The cost of another choice of what stays on chip, found from that of the choice before."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.targets.vta.place import NoRoomError
from dovetail.compiler.targets.vta.planner import Planner
from tests.end_to_end.models import random_network

from .programs import TINY
from .test_stream import lowered

CRAMPED = replace(TINY, name="cramped", act_depth=512)


def _summed(planner: Planner, gone: frozenset[str], price: float) -> float | None:
    try:
        return sum(choice.cost(price) for choice in planner.chooser.cheapest(gone, price))
    except NoRoomError:
        return None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("price", [0.0, 0.25])
def test_costs_are_those_of_the_cheapest_choices(seed: int, price: float) -> None:
    planner = Planner(*lowered(random_network(seed)), CRAMPED)
    names = [item.activation.name for item in planner.items]
    rng = np.random.default_rng(seed)
    judged = 0
    for _ in range(12):
        base = frozenset(rng.choice(names, int(rng.integers(len(names) + 1)), replace=False))
        other = base ^ frozenset(rng.choice(names, int(rng.integers(1, 3)), replace=False))
        if _summed(planner, base, price) is None:
            continue
        wanted = _summed(planner, other, price)
        judged += 1
        if wanted is None:
            with pytest.raises(NoRoomError):
                planner.chooser.cost(other, base, price)
        else:
            assert planner.chooser.cost(other, base, price) == wanted
    assert judged
