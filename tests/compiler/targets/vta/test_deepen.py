"""Buffers of cascades with more room than they need."""

from itertools import count

import pytest

from dovetail.compiler.targets.vta import deepen, emit, search
from dovetail.compiler.targets.vta.cascade import Sized
from dovetail.compiler.targets.vta.deepen import deepened, deepest
from dovetail.compiler.targets.vta.draft import Draft, make_draft
from dovetail.compiler.targets.vta.place import NoRoomError
from dovetail.compiler.targets.vta.plan import Plan
from dovetail.compiler.targets.vta.planner import Planner

from .test_cascade import SMALL, assert_rows_are_there, deep
from .test_stream import assert_exact, lowered

HEIGHT = 48


@pytest.fixture
def planner() -> Planner:
    return Planner(*lowered(deep(HEIGHT, HEIGHT)), SMALL)


def variants(planner: Planner, plan: Plan) -> list[Plan]:
    """``plan`` with one deeper cascade, for each way there is room for."""
    found = []
    for number, choice in enumerate(plan.choices):
        for each in deepened(choice):
            choices = (*plan.choices[:number], each, *plan.choices[number + 1 :])
            try:
                found.append(planner.built(choices, plan.gone))
            except NoRoomError:
                continue
    return found


def test_every_row_is_there_when_it_is_read(planner: Planner) -> None:
    plans = variants(planner, planner.best())
    assert plans
    for plan in plans:
        for cascade in plan.cascades.values():
            assert_rows_are_there(cascade)


def test_results_stay_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deepen, "shared_banks", lambda placed, config: 0)
    plans: list[Plan] = []

    def made(planner: Planner, *others: object) -> Draft:
        activations, overlap, timing, _ = others
        plans.append(deepest(planner, planner.best()))
        return make_draft(planner, plans[-1], activations, overlap, timing)  # type: ignore[arg-type]

    monkeypatch.setattr(emit, "fastest", made)
    assert_exact(deep(HEIGHT, HEIGHT), SMALL, 1)
    assert any(isinstance(each.how, Sized) and each.how.more for each in plans[-1].choices)


def test_nothing_gets_deeper_where_units_would_wait_more(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, counts = planner.best(), count()
    monkeypatch.setattr(deepen, "shared_banks", lambda placed, config: next(counts))
    assert deepest(planner, plan).key == plan.key


def test_in_a_deeper_buffer_fewer_rows_lie_twice(planner: Planner) -> None:
    plan = planner.best()
    seen = 0
    for choice in plan.choices:
        for each in deepened(choice):
            assert isinstance(choice.how, Sized)
            assert isinstance(each.how, Sized)
            for name, ring in choice.how.rings.items():
                deeper = each.how.rings[name]
                assert deeper.mirror * ring.depth <= ring.mirror * deeper.depth
                seen += deeper.mirror * ring.depth < ring.mirror * deeper.depth
    assert seen


def test_it_counts_only_if_the_program_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """``fastest`` keeps what it had when deeper buffers only cost."""
    drafts: list[tuple[bool, int]] = []
    original = search._Search._deepened

    def watched(search: search._Search, best: Draft) -> Draft:
        found = original(search, best)
        drafts.append((found is best, found.cycles - best.cycles))
        return found

    monkeypatch.setattr(search._Search, "_deepened", watched)
    assert_exact(deep(HEIGHT, HEIGHT), SMALL, 1)
    assert drafts
    assert all(gained <= 0 and (same or gained < 0) for same, gained in drafts)
