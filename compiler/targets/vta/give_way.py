"""STOREs moved behind what waits, where they hold a bank that the matrix core or the vector unit
waits for.

A STORE begins as soon as its words are there.  While it holds their bank no other unit reads there.
Where the next layer reads the same rows, its work waits, although the STORE could come later.
"""

from collections.abc import Sequence
from itertools import pairwise

from dovetail.isa.instructions import Gemm, Instruction, Store, Vector
from dovetail.isa.memories import Unit

from .postpone import NEAR, first_use, moved

__all__ = ["giving_way"]


def giving_way(
    program: Sequence[Instruction],
    before: Sequence[frozenset[int]],
    expected: Sequence[tuple[int, int]],
    least: int,
) -> tuple[list[int], list[frozenset[int]]]:
    """Another order of ``program``, in which some STOREs come later, and the new dependences.  The
    order may be no faster.

    A STORE that comes later also depends on the instruction that it gave way to.

    before: for each instruction, those that it depends on.  expected: predicted cycles of each.
    least: cycles of a wait that is worth it.
    """
    first = first_use(before)
    stores = [index for index, each in enumerate(program) if each.unit is Unit.STORE]
    ended = {expected[index][1]: index for index in stores}
    behind: dict[int, int] = {}
    for unit in (Unit.GEMM, Unit.VECTOR):
        own = [index for index, each in enumerate(program) if each.unit is unit]
        for earlier, later in pairwise(own):
            start = expected[later][0]
            if start - expected[earlier][1] <= least:
                continue
            held = (ended.get(start - cycles) for cycles in range(NEAR))
            for store in (index for index in held if index is not None):
                free = store < later < first[store] and store not in before[later]
                if free and _share(program[store], program[later]):
                    behind[store] = max(later, behind.get(store, 0))
    after = [
        each | {behind[index]} if index in behind else each for index, each in enumerate(before)
    ]
    return moved(len(program), behind), after


def _share(store: Instruction, other: Instruction) -> bool:
    """True if both read a bank of ACT."""
    assert isinstance(store, Store)
    assert isinstance(other, Gemm | Vector)
    return bool(store.act_read_banks & other.act_read_banks)
