"""Counts of random programs' features, compared with the instructions themselves."""

from collections import Counter
from dataclasses import replace

from dovetail.isa.configs import find_config
from dovetail.isa.encoding import field_values
from dovetail.isa.instructions import Gemm, Instruction, Load, Store
from dovetail.isa.memories import Memory, Unit
from tests.differential.compare import compare
from tests.differential.coverage import Coverage
from tests.differential.generate import Case, generate

TINY = find_config("tiny")
LOAD = Load(memory=Memory.ACT, sram_address=0, dram_address=0x1000, act_write_banks=1)
STORE = Store(sram_address=0, dram_address=0x1000, act_read_banks=1)
GEMM = Gemm(
    act_address=0,
    wgt_address=0,
    acc_address=0,
    extent=(300, 1, 1, 1, 1, 1),
    act_stride=(0,) * 6,
    wgt_stride=(0,) * 6,
    acc_stride=(0,) * 6,
    act_read_banks=1,
    acc_banks=1,
)


def counted(cases: list[Case]) -> dict[tuple[str, str, str], int]:
    coverage = Coverage(TINY)
    found = compare(cases, ["semantics", "sim"], coverage.add)
    assert not any(found), [each.first for each in found if each]
    return coverage.reached()


def reached(*instructions: Instruction) -> set[str]:
    """Features that a program by hand reaches, its fields aside."""
    case = replace(generate(TINY, 1, 0), instructions=instructions)
    units = {unit.name for unit in Unit}
    return {
        " ".join(goal) for goal, hits in counted([case]).items() if hits and goal[0] not in units
    }


def test_values_of_fields_are_those_of_the_instructions() -> None:
    cases = [generate(TINY, 3, number) for number in range(8)]
    values = Counter(
        (each.unit.name, name, value)
        for case in cases
        for each in case.instructions
        for name, value in field_values(each).items()
    )
    found = counted(cases)
    ends = {"gap": 255, "m0": (1 << 23) - 1, "shift": 31, "act_stride3": (1 << 15) - 1}
    for (unit, name, what), hits in found.items():
        if unit in Unit.__members__ and what in ("0", "1", "-1"):
            assert hits == values[unit, name, int(what)], (unit, name, what)
        if unit in Unit.__members__ and what == "most" and name in ends:
            assert hits == values[unit, name, ends[name]], (unit, name)
    assert found["LOAD", "memory", "wgt"] == values["LOAD", "memory", 1] > 0


def test_a_few_programs_reach_nearly_everything() -> None:
    found = counted([generate(TINY, 4, number) for number in range(60)])
    ends = {goal for goal in found if goal[0] == "end"}  # these programs have no fault
    never = [goal for goal in found.keys() - ends if not found[goal]]
    assert len(never) < 0.05 * len(found), never
    assert not [goal for goal in never if goal[0] in ("together", "bank")]


def test_who_works_together_and_who_waits_is_seen() -> None:
    ended = "end NONE the program"
    assert reached(LOAD) == {ended}
    long, elsewhere = replace(LOAD, count_x=200), replace(STORE, sram_address=600, act_read_banks=2)
    assert reached(long, elsewhere) == {ended, "together LOAD STORE at work"}
    giving = replace(LOAD, post=frozenset({Unit.STORE}))
    taking = replace(STORE, wait=frozenset({Unit.LOAD}))
    assert reached(giving, taking) == {ended, "token LOAD to STORE waited for"}
    assert reached(GEMM, STORE) == {ended, "bank GEMM before STORE waited for"}
    assert reached(GEMM, elsewhere) == {ended, "together GEMM STORE at work"}


def test_tokens_that_nobody_takes_are_as_many_as_there_can_be() -> None:
    posting = replace(LOAD, post=frozenset({Unit.STORE}))
    assert "token LOAD to STORE most" not in reached(*[posting] * (TINY.token_max - 1))
    assert "token LOAD to STORE most" in reached(*[posting] * TINY.token_max)
