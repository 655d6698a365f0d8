"""LOADs put before one that waits, in programs whose pace LOAD sets.

LOAD takes its instructions in order.  While one waits for a STORE, as for a new key that is then a
weight, the bus rests, although LOADs behind it could go on.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from dovetail.isa.instructions import Instruction
from dovetail.isa.memories import Unit

__all__ = ["exchanged", "hastened", "overtaken"]

LEAST = 8
"""Cycles of a wait that is worth it."""

MOST = 12
"""LOADs looked at behind the one that waits."""


def overtaken(
    program: Sequence[Instruction],
    before: Sequence[frozenset[int]],
    expected: Sequence[tuple[int, int]],
) -> Iterator[list[int]]:
    """Other orders of ``program``, in each of which one LOAD comes before another that waits.

    Those for the longest waits come first.  They may be no faster, and keep all dependences.

    before: for each instruction, those that it depends on.  expected: predicted cycles of each.
    """
    loads = [index for index, each in enumerate(program) if each.unit is Unit.LOAD]
    waits = [
        (expected[later][0] - expected[earlier][1], place + 1)
        for place, (earlier, later) in enumerate(pairwise(loads))
    ]
    for wait, place in sorted(waits, reverse=True):
        if wait <= LEAST:
            return
        waiting = loads[place]
        for other in loads[place + 1 : place + 1 + MOST]:
            ahead = _needed(other, waiting, before)
            if waiting not in ahead:
                rest = [index for index in range(waiting, len(program)) if index not in ahead]
                yield [*range(waiting), *sorted(ahead), *rest]


def _needed(last: int, first: int, before: Sequence[frozenset[int]]) -> set[int]:
    """Instruction ``last``, and all from ``first`` on that it depends on."""
    found = {last}
    for index in range(last, first - 1, -1):
        if index in found:
            found.update(each for each in before[index] if each >= first)
    return found


def exchanged(
    program: Sequence[Instruction], before: Sequence[frozenset[int]], number: int
) -> Iterator[list[int]]:
    """Other orders of ``program``, in which its LOAD ``number`` and the next one change places.

    Either goes to the place of the other: the data may then be there when they are needed, or find
    less in their way.  They keep all dependences.

    before: for each instruction, those that it depends on.
    """
    loads = [index for index, each in enumerate(program) if each.unit is Unit.LOAD]
    if number + 1 >= len(loads):
        return
    one, other = loads[number : number + 2]
    between = [*range(one + 1, other)]
    ends = [*range(one)], [*range(other + 1, len(program))]
    if all(one not in before[index] for index in (*between, other)):
        yield [*ends[0], *between, other, one, *ends[1]]
    if between and max(before[other], default=-1) < one:
        yield [*ends[0], other, one, *between, *ends[1]]


def hastened(
    program: Sequence[Instruction], before: Sequence[frozenset[int]], lead: int
) -> list[int]:
    """Another order of ``program``, in which LOADs come up to ``lead`` instructions earlier.

    None comes before another LOAD, or before what it depends on.  LOADs are then not held up by the
    full queue of another unit.

    before: for each instruction, those that it depends on.
    """
    order: list[int] = []
    for index, each in enumerate(program):
        place = len(order)
        while each.unit is Unit.LOAD and place > max(0, len(order) - lead):
            last = order[place - 1]
            if program[last].unit is Unit.LOAD or last in before[index]:
                break
            place -= 1
        order.insert(place, index)
    return order
