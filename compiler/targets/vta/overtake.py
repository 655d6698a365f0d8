"""LOADs put before one that waits, in programs that LOAD sets the pace of.

LOAD takes its instructions in order.  So while one waits for a STORE, as for a key that is then a
weight, the bus rests, although others behind it need nothing any more.
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
    """Other orders of ``program``, in which one LOAD comes before another that waits, those
    of the longest waits first; they may be no faster.

    before: of each instruction, those that it depends on; that order keeps all.  expected:
    predicted cycles of each.
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
    """``last``, and what it depends on from ``first`` on."""
    found = {last}
    for index in range(last, first - 1, -1):
        if index in found:
            found.update(each for each in before[index] if each >= first)
    return found


def exchanged(
    program: Sequence[Instruction], before: Sequence[frozenset[int]], number: int
) -> Iterator[list[int]]:
    """Other orders of ``program``, in which its LOAD ``number`` comes behind the next one, or that
    one before it: their data may then be there when it is needed, or find less in its way.

    before: of each instruction, those that it depends on; all orders keep all.
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
    """Another order of ``program``, in which LOADs come earlier by ``lead`` instructions, as far as
    what they depend on does; so no full queue of another unit holds them up.

    before: of each instruction, those that it depends on; that order keeps all.
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
