"""Words of ACT that are free while layers run."""

from types import SimpleNamespace
from typing import Any

import pytest

from dovetail.compiler.targets.vta.room import Beside, Rooms


def item(name: str, first: int, last: int, words: int) -> Any:
    """An activation that is there from layer ``first`` to ``last``; -1 is before all."""
    activation = SimpleNamespace(name=name)
    return SimpleNamespace(activation=activation, first=first, last=last, words=words)


ITEMS = [item("x", -1, 1, 10), item("y", 1, 2, 20), item("z", 3, 4, 40)]


def rooms() -> Rooms:
    return Rooms(ITEMS, 5, 100)


def test_what_lives_at_any_of_some_layers_takes_room_in_all() -> None:
    assert [rooms().of(layer, layer) for layer in range(5)] == [90, 70, 80, 60, 60]
    assert rooms().of(0, 2) == 70
    assert rooms().of(2, 3) == 40
    found = rooms()
    assert found.each(0, 4) == found.each(0, 4) == (90, 70, 70, 30)
    assert found.each(2, 2) == ()


@pytest.mark.parametrize(
    ("moved", "gone", "each"),
    [
        (item("new", 2, 3, 5), (), (90, 70, 75, 55, 60)),
        (ITEMS[1], ("y",), (90, 90, 100, 60, 60)),
        (item("new", 4, 4, 5), (), (90, 70, 80, 60, 55)),
        (item("new", -1, 0, 5), (), (85, 70, 80, 60, 60)),
    ],
)
def test_room_beside_what_comes_or_goes(moved: Any, gone: Any, each: tuple[int, ...]) -> None:
    found = Beside(rooms(), [moved], gone)
    assert tuple(found.of(layer, layer) for layer in range(5)) == each
    for layer in range(5):
        assert found.each(layer, layer + 1) == (each[layer],)
    whole = found.each(0, 5)
    assert whole == tuple(found.of(0, last) for last in range(5))
    base = rooms().of(0, 4)
    assert whole[-1] == base + (20 if gone else -5)
