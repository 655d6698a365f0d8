"""LOADs moved behind others that the matrix core, or it and the vector unit, waits for.

The order of the program has each LOAD start as soon as it can.  Weights that are needed much later
may therefore come just before what an idle matrix core waits for, and slow down the STORE that has
to come before that.  Or they come while there is no room yet for a table that is needed next.
"""

from collections.abc import Sequence, Set
from itertools import accumulate

from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Unit

__all__ = ["NEAR", "first_use", "moved", "postponed"]

LEAST = 500
"""Cycles of a wait that is worth it."""

MOST = 5
"""LOADs looked at before the one that is waited for."""

NEAR = 4
"""Cycles from the end of what an instruction waited for to its start, at most."""


def postponed(
    program: Sequence[Instruction],
    before: Sequence[frozenset[int]],
    expected: Sequence[tuple[int, int]],
    units: Set[Unit] = frozenset({Unit.GEMM}),
) -> list[int]:
    """Another order of ``program``, in which some LOADs come later.  It may be no faster.

    before: for each instruction, those that it depends on; the order keeps these dependences.
    expected: predicted cycles of each.
    units: LOADs move where all of these wait.
    """
    first = first_use(before)
    loads = [index for index, each in enumerate(program) if each.unit is Unit.LOAD]
    number = {index: place for place, index in enumerate(loads)}
    behind: dict[int, int] = {}
    waiting = [index for index, each in enumerate(program) if each.unit in units]
    waiting.sort(key=lambda index: expected[index][0])
    ends = accumulate((expected[index][1] for index in waiting), max)
    for idle, later in zip(ends, waiting[1:], strict=False):
        start = expected[later][0]
        awaited = [
            index
            for index in before[later]
            if index in number and expected[index][1] + NEAR >= start
        ]
        if start - idle <= LEAST or not awaited:
            continue
        last = max(awaited, key=lambda index: expected[index][1])
        place = number[last]
        for index in reversed(loads[max(0, place - MOST) : place]):
            if expected[index][1] < idle:
                break
            if first[index] > later:
                behind[index] = last
    return moved(len(program), behind)


def first_use(before: Sequence[frozenset[int]]) -> list[int]:
    """For each instruction, the first one that depends on it."""
    first = [len(before)] * len(before)
    for index in reversed(range(len(before))):
        for earlier in before[index]:
            first[earlier] = index
    return first


def moved(count: int, behind: dict[int, int]) -> list[int]:
    """The numbers below ``count`` in order, but each number in ``behind`` right after the one that
    it is mapped to.
    """
    following: dict[int, list[int]] = {}
    for index in sorted(behind):
        following.setdefault(behind[index], []).append(index)
    order: list[int] = []

    def append(index: int) -> None:
        order.append(index)
        for each in following.get(index, ()):
            append(each)

    for index in range(count):
        if index not in behind:
            append(index)
    return order
