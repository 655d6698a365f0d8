"""The message for a word that a machine left wrong."""

import pytest

from dovetail.isa.memories import Memory, Unit
from dovetail.runtime.debug.faults import Fault
from dovetail.runtime.debug.session import InstructionInfo


@pytest.mark.parametrize(
    ("space", "lane", "place"), [(None, None, "dram 0x40"), (Memory.ACT, 2, "act 0x40, lane 2")]
)
def test_a_fault_says_where_it_lies(space: Memory | None, lane: int | None, place: str) -> None:
    instruction = InstructionInfo(7, Unit.GEMM, "a1", "gemm rows=3", 0, 1, 2)
    said = str(Fault(instruction, space, 64, lane, -3, 5, 9))
    assert said == (
        "the machine departs from what instruction 7 means: it left -3 in "
        f"{place}, required 5: gemm rows=3"
    )
