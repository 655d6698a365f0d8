"""The cost of another choice of what stays on chip, found from that of the choice before."""

from dataclasses import replace

import numpy as np
import pytest

from dovetail.compiler.targets.vta.choose import Chooser
from dovetail.compiler.targets.vta.place import NoRoomError
from dovetail.compiler.targets.vta.planner import Planner
from tests.end_to_end.models import random_network

from .programs import TINY
from .test_stream import lowered

CRAMPED = replace(TINY, name="cramped", act_depth=512)


def _summed(chooser: Chooser, gone: frozenset[str], price: float) -> float | None:
    try:
        return sum(choice.cost(price) for choice in chooser.cheapest(gone, price))
    except NoRoomError:
        return None


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("price", "edges"), [(0.0, False), (0.0, True), (0.25, False), (0.25, True)]
)
def test_costs_are_those_of_the_cheapest_choices(seed: int, price: float, *, edges: bool) -> None:
    planner = Planner(*lowered(random_network(seed)), CRAMPED)
    chooser = planner.choosers[edges]
    names = [item.activation.name for item in planner.items]
    rng = np.random.default_rng(seed)
    judged = 0
    for _ in range(12):
        base = frozenset(rng.choice(names, int(rng.integers(len(names) + 1)), replace=False))
        other = base ^ frozenset(rng.choice(names, int(rng.integers(1, 3)), replace=False))
        if _summed(chooser, base, price) is None:
            continue
        wanted = _summed(chooser, other, price)
        judged += 1
        if wanted is None:
            with pytest.raises(NoRoomError):
                chooser.cost(other, base, price)
        else:
            assert chooser.cost(other, base, price) == wanted
    assert judged


def test_changes_that_save_most_come_first() -> None:
    chooser = Planner(*lowered(random_network(1)), CRAMPED).choosers[True]
    choices = chooser.cheapest(frozenset(), 0.0)
    several = False
    for number in (0, 1):
        saved = []
        for change in chooser.changes(choices, number, frozenset()):
            over = [each for each in choices if change.first <= each.first < change.end]
            assert sum(each.count for each in over) == sum(each.count for each in change.choices)
            saved.append(sum(c.cycles for c in over) - sum(c.cycles for c in change.choices))
        assert saved == sorted(saved, reverse=True)
        several |= len(set(saved)) > 2
    assert several
