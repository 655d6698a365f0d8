"""Axes that a Reshape joins and splits, and channels of heads side by side."""

import pytest

from dovetail.compiler.targets.vta.passes.axis_groups import axis_groups, wide_axes
from dovetail.compiler.targets.vta.passes.group_channels import Group, plain_channels


@pytest.mark.parametrize(
    ("before", "after", "groups"),
    [
        ((2, 3), (2, 3), [([0], [0]), ([1], [1])]),
        ((2, 3), (6,), [([0, 1], [0])]),
        ((6,), (2, 3), [([0], [0, 1])]),
        ((1, 2, 1, 3), (2, 1, 3), [([1], [0]), ([3], [2])]),
        ((4, 6), (2, 2, 3, 2), [([0], [0, 1]), ([1], [2, 3])]),
        ((4, 6), (8, 3), [([0, 1], [0, 1])]),
        ((2, 3, 5), (6, 5), [([0, 1], [0]), ([2], [1])]),
        ((1, 1), (1,), []),
        ((0, 3), (5, 0), None),
        ((0, 3), (0,), None),
    ],
)
def test_groups_are_as_small_as_can_be(
    before: tuple[int, ...],
    after: tuple[int, ...],
    groups: list[tuple[list[int], list[int]]] | None,
) -> None:
    assert axis_groups(before, after) == groups


def test_axes_of_one_element_are_not_wide() -> None:
    assert wide_axes((1, 2, 1, 0, 3)) == [1, 4]


def test_heads_lie_run_by_run_each_with_all_heads() -> None:
    group = Group(4, 2, (2, 0, 1), (1, 2), 2)
    runs = [[(0, 2), (1, 2)], [(0, 0), (0, 1), (1, 0), (1, 1)]]
    assert group.channels == [*runs[0] * 2, *runs[1] * 2]
    rows = ["1000" + "11000000", "0100" + "00110000"]
    assert group.own.astype(int).tolist() == [[int(each) for each in row] for row in rows]
    assert plain_channels(group) == [(head, place) for head in (0, 1) for place in (0, 1, 2)]
