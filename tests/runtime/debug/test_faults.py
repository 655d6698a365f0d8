"""Words that a machine left wrong: how they are found and told."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dovetail.isa.memories import Memory, Unit
from dovetail.runtime.debug import compare
from dovetail.runtime.debug.faults import Fault, first_late
from dovetail.runtime.debug.order import Race
from dovetail.runtime.debug.session import InstructionInfo, Session

from ..sample import SHAPE, copy_module


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


@pytest.mark.parametrize(("space", "place"), [(None, "dram 0x40"), (Memory.ACT, "act 0x40")])
def test_a_race_names_who_did_not_wait_for_whom(space: Memory | None, place: str) -> None:
    one, two, three = (
        InstructionInfo(index, unit, "a", "line", 0, 1, 2)
        for index, unit in ((3, Unit.LOAD), (5, Unit.GEMM), (8, Unit.STORE))
    )
    for reader, found, expected, said in (
        (two, None, one, "5 (GEMM) did not wait for 3 (LOAD): 5 read|nobody left it|it is 3's"),
        (two, three, one, "8 (STORE) did not wait for 5 (GEMM): 5 read|8 left it|it is 3's"),
        (three, one, two, "8 (STORE) did not wait for 5 (GEMM): 8 read|3 left it|it is 5's"),
        (two, one, None, "5 (GEMM) did not wait for 5 (GEMM): 5 read|3 left it|it is nobody's"),
    ):
        shown = str(Race(reader, space, 64, found, expected, ()))
        first, left, right = said.split("|")
        assert shown == (
            f"instruction {first} {place} as {left}, in the order of the program {right}; "
            "no token orders them"
        )


def test_the_first_event_that_is_late_is_named() -> None:
    session = Session(copy_module(), {"x": np.zeros(SHAPE, np.int8)})
    assert first_late(session) is None
    done = session.result
    assert done.accepted is not None
    assert done.ended is not None
    start, end = int(done.accepted[1]), int(done.ended[0])
    late, early = done.accepted + np.array([0, 3]), done.ended - np.array([1, 0])
    started = f"1 is started in cycle {start + 3}; on the simulator in {start}"
    ended = f"0 is ended in cycle {end - 1}; on the simulator in {end}"
    for changed, said in (
        ({"accepted": late}, started),
        ({"ended": early}, ended),
        ({"ended": early, "accepted": late}, min((end, ended), (start, started))[1]),
    ):
        other: Any = SimpleNamespace(launch=session.launch, result=replace(done, **changed))
        assert first_late(other) == f"instruction {said}"


def test_each_tensor_that_an_instruction_writes_part_of_is_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Words of ACT alone are looked at, and those that are part of one."""
    words = [(Memory.ACC, np.arange(2)), (Memory.ACT, np.array([1, 2, 3, 5, 7]))]
    session: Any = SimpleNamespace(
        program=[SimpleNamespace(unit=Unit.VECTOR)],
        footprints=SimpleNamespace(writes=lambda index: words),
        shadow=SimpleNamespace(
            tensor=np.array([0, -1, 1, 0, 0, 1, 0, -1]), place=np.arange(24).reshape(8, 3)
        ),
        record=SimpleNamespace(tensors=["first", "second"]),
    )
    state: Any = SimpleNamespace(act=10 * np.arange(8))

    def shown(*given: Any) -> list[object]:
        _, expected, index, layout, places, data, memory, addresses = given
        rows = [each.tolist() for each in places]
        return [expected, index, layout, rows, data.tolist(), memory, addresses.tolist()]

    monkeypatch.setattr(compare, "_compare", shown)
    expected: Any = "expected"
    found: list[Any] = list(compare.differences(session, expected, 0, state))
    assert found == [
        ["expected", 0, "first", [[9], [10], [11]], [30], "act", [3]],
        ["expected", 0, "second", [[6, 15], [7, 16], [8, 17]], [20, 50], "act", [2, 5]],
    ]
