"""Axes that a Reshape joins and splits."""

from collections.abc import Sequence
from math import prod

__all__ = ["axis_groups", "wide_axes"]


def wide_axes(shape: Sequence[int]) -> list[int]:
    """The axes with more than one element."""
    return [axis for axis, size in enumerate(shape) if size > 1]


def axis_groups(
    before: Sequence[int], after: Sequence[int]
) -> list[tuple[list[int], list[int]]] | None:
    """For each group, as small as can be, the wide axes of a tensor of shape ``before`` that become
    which wide axes of ``after``; None where one of them is empty.
    """
    old, new = wide_axes(before), wide_axes(after)
    groups = []
    while old and new:
        joined, split = [old.pop(0)], [new.pop(0)]
        while (have := prod(before[axis] for axis in joined)) != (
            want := prod(after[axis] for axis in split)
        ):
            rest, group = (old, joined) if have < want else (new, split)
            if not rest:
                return None
            group.append(rest.pop(0))
        groups.append((joined, split))
    return None if old or new else groups
