"""Two programs of the same layers as one, with the faster parts of both."""

from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from dovetail.compiler.targets.vta import search
from dovetail.compiler.targets.vta.choice import Choice
from dovetail.compiler.targets.vta.cross import crossed


@dataclass
class Drafted:
    """A draft, as far as it is looked at."""

    plan: Any
    shares: list[int]


def layers(*edges: tuple[list[str], str]) -> Any:
    """Layers with inputs and an output."""
    named = [
        SimpleNamespace(
            inputs=[SimpleNamespace(name=x) for x in xs], output=SimpleNamespace(name=y)
        )
        for xs, y in edges
    ]
    return SimpleNamespace(layers=named)


def draft(starts: list[int], shares: list[int], *gone: str) -> Any:
    """A draft whose choices begin with these layers."""
    ends = pairwise([*starts, len(shares)])
    choices = tuple(Choice(first, end - first, 0, 0, None) for first, end in ends)
    return Drafted(SimpleNamespace(choices=choices, gone=frozenset(gone)), shares)


CHAIN = layers((["x"], "a"), (["a"], "b"), (["b"], "c"), (["c"], "d"))


def firsts(found: list[Choice]) -> list[tuple[int, int]]:
    return [(each.first, each.count) for each in found]


def test_each_part_is_that_of_the_faster_program() -> None:
    best, other = draft([0, 2], [5, 5, 5, 5], "c"), draft([0, 1, 2, 3], [3, 3, 9, 9], "c")
    choices, gone, saved = crossed(CHAIN, best, other)
    assert firsts(choices) == [(0, 1), (1, 1), (2, 2)]
    assert (gone, saved) == ({"c"}, 4)


def test_parts_that_save_little_stay() -> None:
    """The first part saves two cycles, the second one."""
    best, other = draft([0, 1, 2], [5, 5, 5, 5]), draft([0, 1, 2], [3, 4, 9, 9])
    assert [crossed(CHAIN, best, other, least)[2] for least in (0, 1, 2)] == [3, 2, 0]


def test_nothing_is_cut_where_a_plan_has_a_group() -> None:
    best, other = draft([0, 1], [5, 5, 5, 5]), draft([0, 2], [1, 1, 9, 9])
    choices, _, saved = crossed(CHAIN, best, other)
    assert firsts(choices) == [(0, 1), (1, 3)]
    assert saved == 0


def test_layers_on_both_sides_of_a_cut_agree_where_an_activation_is() -> None:
    """The others have ``b``, made by layer 1 and read by layer 2, in DRAM."""
    best, other = draft([0, 1, 2, 3], [5, 5, 5, 5]), draft([0, 1, 2, 3], [9, 1, 6, 1], "b")
    choices, gone, saved = crossed(CHAIN, best, other)
    assert saved == (10 - 7) + (5 - 1)
    assert gone == {"b"}
    assert [each in other.plan.choices for each in choices] == [True] * 4
    assert crossed(CHAIN, other, best)[1:] == ({"b"}, 4)


def test_what_no_faster_part_touches_is_where_it_was() -> None:
    best = draft([0, 1, 2, 3], [1, 1, 5, 5], "d")
    other = draft([0, 1, 2, 3], [9, 9, 1, 5], "a", "d")
    assert crossed(CHAIN, best, other)[1:] == ({"d"}, 4)


@pytest.mark.parametrize(("is_long", "drawn"), [(False, ["b", "c", "a"]), (True, ["b", "c"])])
def test_the_program_that_promises_most_gives_its_parts_first(
    monkeypatch: pytest.MonkeyPatch, *, is_long: bool, drawn: list[str]
) -> None:
    """A long program takes nothing that saves less than a half percent of its cycles."""

    def made(name: str, cycles: int) -> Any:
        program = [None] * (search.FEW_OPERATIONS + is_long)
        plan = SimpleNamespace(key=name, placing=None)
        return SimpleNamespace(plan=plan, cycles=cycles, program=program)

    best = made("best", 1000)
    others = {name: made(name, 2000) for name in "abc"}
    promises = {"a": 4, "b": 60, "c": 50}
    planner = SimpleNamespace(built=lambda choices, gone, placing: SimpleNamespace(key=choices))
    tried: list[str] = []

    def drafted(_: object, plan: Any) -> Any:
        tried.append(plan.key[0])
        return made(plan.key, 990 if plan.key[0] == "c" else 1010)

    monkeypatch.setattr(
        search,
        "crossed",
        lambda _, best, other, least: ([other.plan.key], set(), promises[other.plan.key]),
    )
    monkeypatch.setattr(search._Search, "_draft", drafted)
    given: Any = planner, {}, None
    assert (
        search._Search(*given)._crossed(best, [best, *others.values(), others["a"]]).cycles == 990
    )
    assert tried == drawn
