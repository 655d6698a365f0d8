"""Two programs of the same layers as one, with the faster parts of both."""

from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

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
